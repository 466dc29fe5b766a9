package klamm.compat;

import java.util.LinkedHashMap;
import java.util.Map;

/** `Main HOST:PORT SUITE...`: runs the suites in turn; exit 1 when a check failed. */
public final class Main {
  interface Suite {
    void run(Context context, Checks checks) throws Exception;
  }

  private static final Map<String, Suite> SUITES = new LinkedHashMap<>();

  static {
    SUITES.put("producer", ProducerSuite::run);
    SUITES.put("producer-errors", ProducerErrorsSuite::run);
    SUITES.put("consumer", ConsumerSuite::run);
    SUITES.put("admin", AdminSuite::run);
    SUITES.put("configs", ConfigsSuite::run);
    SUITES.put("strict", StrictSuite::run);
    SUITES.put("groups", GroupsSuite::run);
    SUITES.put("transactions", TransactionsSuite::run);
  }

  private Main() {}

  public static void main(String[] args) {
    int failed = 0;
    try (Context context = new Context(args[0])) {
      for (int i = 1; i < args.length; i++) {
        String name = args[i];
        Checks checks = new Checks("java/" + name);
        // A suite that throws outside a check is a failed check too.
        Checks whole = new Checks("java/" + name);
        try {
          SUITES.get(name).run(context, checks);
        } catch (Throwable t) {
          whole.check("suite", () -> { throw new AssertionError(t.toString(), t); });
        }
        failed += checks.failed() + whole.failed();
      }
    }
    System.exit(failed == 0 ? 0 : 1);
  }
}
