// Entries of ordered queues: what stands before what, and which handlers were started. Pure.
import {
  type Account,
  type Booked,
  broken,
  bySeq,
  type Entering,
  type Entry,
  type Of,
  shortId,
} from './books.ts'
import type { MessageRow, Snapshot, Violation } from './terms.ts'

type Placed = Pick<Entry, 'seq' | 'key' | 'isFailed' | 'isParked'>

/** An earlier one of its key, which lives or holds it though it is dead. */
export function standsBefore(one: Placed, other: Placed): boolean {
  if (one.key === null || one.key !== other.key || one.seq === null || other.seq === null) return false
  return (!one.isFailed || one.isParked) && isBefore(one.seq, other.seq)
}

export function isFirst({ messages }: Account, entry: Entry): boolean {
  return !messages.some((one) => standsBefore(one, entry))
}

function isBefore(one: string, other: string): boolean {
  return BigInt(one) < BigInt(other)
}

/** A handler is started when all before it is gone; and once it was, none of them is handled again. */
export function started({ account }: Entering, { lease }: Of<'started'>): Booked {
  const entry = bySeq(account, lease.seq)
  const what = `#${shortId(lease.id)} was started`
  const before = entry && account.messages.find((one) => standsBefore(one, entry))
  if (before !== undefined)
    return broken('a handler starts when all before it is gone', `${what} behind #${shortId(before.id)}`)
  if (entry === undefined || entry.key === null) return { account }
  const last = account.started.get(entry.key)
  if (last !== undefined && isBefore(lease.seq, last))
    return broken('nothing is handled again after one behind it', `${what} after one behind it`)
  return { account: { ...account, started: new Map(account.started).set(entry.key, lease.seq) } }
}

/** The earliest first. Where they are is known when the tables are looked at. */
export function joined({ account, hour, wasAlone }: Entering, { count }: Of<'joined'>): Booked {
  const due = account.messages
    .filter(({ laterKey, dueAt, isFailed }) => laterKey !== null && !isFailed && (dueAt ?? hour) <= hour)
    .toSorted((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0))
  if (count > due.length || (wasAlone && count < due.length))
    return broken('what is due joins its key, once', `${count} joined, ${due.length} were due`)
  const messages = account.messages.map((one) => {
    if (!due.slice(0, count).includes(one)) return one
    return { ...one, key: one.laterKey, laterKey: null, dueAt: null, seq: null }
  })
  return { account: { ...account, messages } }
}

export function seenOf(
  messages: readonly MessageRow[],
  before: Account['seen'] = new Map(),
): ReadonlyMap<string, readonly string[]> {
  const seen = new Map(before)
  for (const { key, seq } of messages) if (key !== null) seen.set(key, [...(seen.get(key) ?? []), seq])
  return seen
}

/** What was committed later has the higher place, within a key: else it would come to stand before one that may be under way. */
export function outOfOrder({ seen }: Account, { messages }: Snapshot): Violation | null {
  const late = messages.find(({ key, seq }) => {
    const known = key === null ? [] : (seen.get(key) ?? [])
    return !known.includes(seq) && known.some((one) => isBefore(seq, one))
  })
  if (late === undefined) return null
  return broken('within a key the order is that of commits', `#${shortId(late.id)} came before a known one`)
    .violation
}
