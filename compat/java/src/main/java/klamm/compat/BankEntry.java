package klamm.compat;

/**
 * One record of the bank: what a transfer did to one account. `records` are those of the whole
 * transfer, `here` those of it in this partition.
 */
record BankEntry(
    String transfer, int records, int here, int account, long delta, long balance) {
  static final int ACCOUNTS = 32;
  static final int PARTITIONS = 4;
  static final int OWNERS = 4;
  static final long FIRST_BALANCE = 1000;
  static final long TOTAL = ACCOUNTS * FIRST_BALANCE;
  /** The transfer that fills the accounts. */
  static final String OPENING = "opening";

  /** A record that is no entry: its offset says where the partition ended. */
  static final byte[] MARK = {};

  static boolean isMark(byte[] bytes) {
    return bytes.length == 0;
  }

  static int partitionOf(int account) {
    return account % PARTITIONS;
  }

  /** Only its owner writes to an account, so what it has read stays true until it writes. */
  static int ownerOf(int account) {
    return account / PARTITIONS % OWNERS;
  }

  byte[] bytes() {
    return (transfer + ";" + records + ";" + here + ";" + account + ";" + delta + ";" + balance)
        .getBytes();
  }

  static BankEntry of(byte[] bytes) {
    String[] part = new String(bytes).split(";");
    return new BankEntry(
        part[0], Integer.parseInt(part[1]), Integer.parseInt(part[2]), Integer.parseInt(part[3]),
        Long.parseLong(part[4]), Long.parseLong(part[5]));
  }
}
