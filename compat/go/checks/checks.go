// Package checks runs named checks and prints one line for each: `ok NAME` or `FAIL NAME: why`.
package checks

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"time"
)

// Deadline is how long anything may take that is expected to happen.
const Deadline = 30 * time.Second

var (
	suite  string
	failed int
	names  int
	run    = fmt.Sprintf("%x-%x", os.Getpid(), time.Now().UnixMilli())
	base   = time.Now().UnixMilli() - 60_000
)

// Start names the suite.
func Start(name string) { suite = name }

// Check runs a body, which panics or returns an error when something is wrong.
func Check(name string, body func() error) {
	err := guarded(body)
	if err == nil {
		fmt.Printf("ok %s %s\n", suite, name)
		return
	}
	failed++
	fmt.Printf("FAIL %s %s: %s\n", suite, name, strings.ReplaceAll(err.Error(), "\n", " "))
}

func guarded(body func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return body()
}

// End exits with the outcome.
func End() {
	if failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

// Unique is a name that no other run has used.
func Unique(prefix string) string {
	names++
	return fmt.Sprintf("go-%s-%s-%d", prefix, run, names)
}

// Same panics unless both are equal; nil and empty slices differ.
func Same(what string, expected, actual any) {
	if !reflect.DeepEqual(expected, actual) {
		panic(fmt.Sprintf("%s: expected %.120v, got %.120v", what, expected, actual))
	}
}

// That panics unless it holds.
func That(what string, holds bool) {
	if !holds {
		panic("not so: " + what)
	}
}

// Must panics on an error.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Eventually repeats what becomes true a moment after the answer that promised it.
func Eventually(body func() error) {
	end := time.Now().Add(Deadline)
	for {
		err := guarded(body)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			panic(err)
		}
	}
}

// A Header of the sample.
type Header struct {
	Key   string
	Value []byte
}

// Key, Value, Timestamp and Headers of the i-th record follow from seed and index; nil is null.
func Key(seed, i int) []byte {
	switch {
	case i%5 == 0:
		return nil
	case i%7 == 0:
		return []byte{}
	}
	return fmt.Appendf(nil, "key-%d-%d", seed, i)
}

// Value: see Key.
func Value(seed, i int) []byte {
	if i%11 == 3 {
		return nil
	}
	if i%13 == 4 {
		return []byte{}
	}
	noise := rand.New(rand.NewSource(int64(seed*31 + i)))
	value := make([]byte, 1+noise.Intn(600))
	noise.Read(value)
	if i%2 == 0 {
		copy(value[len(value)/4:], bytes.Repeat([]byte("x"), len(value)))
	}
	return value
}

// Timestamp: see Key.
func Timestamp(i int) time.Time {
	return time.UnixMilli(base + int64(i)*7 - int64(i%3)*20)
}

// Headers: see Key.
func Headers(seed, i int) []Header {
	all := []Header{{"h0-é", []byte{byte(i), byte(seed), 255}}, {"h1", nil}, {"h0-é", []byte{}}}
	return all[:i%4]
}
