package klamm.compat;

import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.ExecutionException;

/** Runs named checks and prints one line for each: `ok NAME` or `FAIL NAME: why`. */
final class Checks {
  /** A check: returns when what it looks at is right, throws otherwise. */
  interface Body {
    void run() throws Exception;
  }

  private final String suite;
  private int failed;

  Checks(String suite) {
    this.suite = suite;
  }

  void check(String name, Body body) {
    try {
      body.run();
      System.out.println("ok " + suite + " " + name);
    } catch (Throwable t) {
      failed++;
      System.out.println("FAIL " + suite + " " + name + ": " + describe(t));
    }
    System.out.flush();
  }

  int failed() {
    return failed;
  }

  private static String describe(Throwable t) {
    StringBuilder text = new StringBuilder(t.toString().replace('\n', ' '));
    for (StackTraceElement e : t.getStackTrace()) {
      if (e.getClassName().startsWith("klamm.compat") && !e.getClassName().contains("Checks")) {
        text.append(" (").append(e.getFileName()).append(':').append(e.getLineNumber()).append(')');
        break;
      }
    }
    return text.toString();
  }

  static void same(String what, Object expected, Object actual) {
    boolean equal =
        expected instanceof byte[] && actual instanceof byte[]
            ? Arrays.equals((byte[]) expected, (byte[]) actual)
            : Objects.equals(expected, actual);
    if (!equal) {
      throw new AssertionError(what + ": expected " + show(expected) + ", got " + show(actual));
    }
  }

  static void that(String what, boolean holds) {
    if (!holds) {
      throw new AssertionError("not so: " + what);
    }
  }

  /** The call must end in exactly this exception, bare or as the cause of a future's. */
  static <T extends Throwable> T fails(Class<T> expected, Body body) {
    try {
      body.run();
    } catch (Throwable t) {
      Throwable found = t instanceof ExecutionException && t.getCause() != null ? t.getCause() : t;
      if (expected == found.getClass()) {
        return expected.cast(found);
      }
      throw new AssertionError("expected " + expected.getSimpleName() + ", got " + found, found);
    }
    throw new AssertionError("expected " + expected.getSimpleName() + ", but it succeeded");
  }

  private static String show(Object o) {
    if (!(o instanceof byte[])) {
      return String.valueOf(o);
    }
    byte[] bytes = (byte[]) o;
    String head = Arrays.toString(Arrays.copyOf(bytes, Math.min(bytes.length, 16)));
    return bytes.length + " bytes " + head;
  }
}
