/** What Postgres says of a snapshot: every transaction below `xmin` has ended, none from `xmax` on is seen, `running` are between. */
export interface Snapshot {
  readonly xmin: bigint
  readonly xmax: bigint
  readonly running: readonly bigint[]
}

/** The text of `pg_current_snapshot()`: `xmin:xmax:running,…`. */
export function parseSnapshot(text: string): Snapshot {
  const [xmin = '', xmax = '', running = ''] = text.split(':')
  return {
    xmin: BigInt(xmin),
    xmax: BigInt(xmax),
    running: running === '' ? [] : running.split(',').map(BigInt),
  }
}

/** The transactions that were running at the last look, and when each was first seen (ms of the local, monotonic clock). */
export type FirstSeen = ReadonlyMap<bigint, number>

/**
 * How long a transaction may hold the cursors back. With one of two seconds, eight writers of half a second to one and a half
 * gave a median latency of 76 ms instead of 15: handlers with a transaction look like that.
 */
const patienceMs = 250

export interface Horizon {
  /** Below it every transaction has ended, but for those that we no longer wait for: their rows are the sweep's. */
  readonly patient: bigint
  /** Below it every transaction has ended. */
  readonly strict: bigint
  readonly firstSeen: FirstSeen
}

/**
 * Which transactions can still commit a row with a low seq. The age counts per transaction, told by the list of running ones:
 * counted per claim, one long writer would hold every cursor back for as long as it lives.
 */
export function horizonOf(snapshot: Snapshot, before: FirstSeen, nowMs: number): Horizon {
  const firstSeen = new Map(snapshot.running.map((xid) => [xid, before.get(xid) ?? nowMs]))
  const young = snapshot.running.filter((xid) => nowMs - (firstSeen.get(xid) ?? nowMs) < patienceMs)
  let patient = snapshot.xmax
  for (const xid of young) if (xid < patient) patient = xid
  return { patient, strict: snapshot.xmin, firstSeen }
}
