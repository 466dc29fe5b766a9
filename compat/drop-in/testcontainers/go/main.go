// Testcontainers for Go: its Kafka module with another image, used with sarama as in its example.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/kafka"
)

func use(brokers []string) error {
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	producer, err := sarama.NewSyncProducer(brokers, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	message := &sarama.ProducerMessage{
		Topic: "t", Key: sarama.StringEncoder("key"), Value: sarama.StringEncoder("value"),
	}
	if _, _, err := producer.SendMessage(message); err != nil {
		return err
	}
	consumer, err := sarama.NewConsumer(brokers, config)
	if err != nil {
		return err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition("t", 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer partition.Close()
	select {
	case got := <-partition.Messages():
		if string(got.Value) != "value" {
			return fmt.Errorf("read %q", got.Value)
		}
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("the record did not come")
	}
}

func run(image string) error {
	ctx := context.Background()
	before := time.Now()
	container, err := kafka.Run(ctx, image, kafka.WithClusterID("test-cluster"))
	defer func() {
		if container != nil {
			_ = testcontainers.TerminateContainer(container)
		}
	}()
	if err != nil {
		return err
	}
	fmt.Printf("   go kafka.Run: started in %d ms\n", time.Since(before).Milliseconds())
	brokers, err := container.Brokers(ctx)
	if err != nil {
		return err
	}
	return use(brokers)
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Println("FAIL go kafka.Run:", err)
		os.Exit(1)
	}
	fmt.Println("ok go kafka.Run")
}
