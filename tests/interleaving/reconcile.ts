// The books against the tables. Pure.
import { outOfOrder, seenOf } from './book-order.ts'
import { type Account, type Booked, broken, type Entry, shortId, shortToken } from './books.ts'
import type { DeadRow, MessageRow, Scenario, Snapshot, Violation } from './terms.ts'

/** What must hold of the tables whatever was reported, and then: they hold what the books say. Returns books that know every seq. */
export function reconcile(account: Account, snapshot: Snapshot, scenario: Scenario): Booked {
  const violation =
    inTwoPlaces(snapshot) ??
    nameHeldTwice(snapshot) ??
    lost(account, snapshot) ??
    unreported(account, snapshot) ??
    pauseProblem(account, snapshot) ??
    outOfOrder(account, snapshot) ??
    effectsProblem(account, snapshot, scenario)
  if (violation !== null) return { violation }
  const seqs = new Map(snapshot.messages.map(({ id, seq }) => [id, seq]))
  const messages = account.messages.map((entry) => ({ ...entry, seq: seqs.get(entry.id)! }))
  return { account: { ...account, messages, seen: seenOf(snapshot.messages, account.seen) } }
}

function inTwoPlaces({ messages, dead }: Snapshot): Violation | null {
  const id = twice([...messages, ...dead].map((row) => row.id))
  return id === null ? null : broken('a message is in one place', `#${shortId(id)} is in two`).violation
}

function nameHeldTwice({ messages }: Snapshot): Violation | null {
  const names = messages.flatMap(({ timer, isFailed }) => (timer === null || isFailed ? [] : timer))
  const name = twice(names)
  return name === null
    ? null
    : broken('a timer’s name has one holder', `${name} is the name of two`).violation
}

function lost(account: Account, { messages, dead }: Snapshot): Violation | null {
  const stored = new Set([...messages, ...dead].map(({ id }) => id))
  const gone = [...account.messages, ...account.dead].find(({ id }) => !stored.has(id))
  if (gone === undefined) return null
  return broken('no message is lost', `#${shortId(gone.id)} is nowhere, and nobody has ended it`).violation
}

function unreported(account: Account, { messages, dead }: Snapshot): Violation | null {
  const booked = [
    ...account.messages.map((entry) => bookedLine(account, entry)),
    ...account.dead.map(deadLine),
  ]
  const stored = [...messages.map(storedLine), ...dead.map(deadLine)]
  const more = stored.filter((line) => !booked.includes(line))
  const less = booked.filter((line) => !stored.includes(line))
  if (more.length + less.length === 0) return null
  const details = [...less.map((line) => `reported ${line}`), ...more.map((line) => `stored ${line}`)]
  return broken('nothing changes that was not reported', details.join('; ')).violation
}

function pauseProblem(account: Account, snapshot: Snapshot): Violation | null {
  if (account.pausedBy === snapshot.pausedBy) return null
  const details = `reported ${account.pausedBy}, stored ${snapshot.pausedBy}`
  return broken('who pauses first stays recorded', details).violation
}

function effectsProblem(
  account: Account,
  { effects }: Snapshot,
  { isTransactional }: Scenario,
): Violation | null {
  const promise = 'the effect of a message is there once'
  const repeated = twice(effects)
  if (repeated !== null) return broken(promise, `#${shortId(repeated)} has had two`).violation
  if (effects.toSorted().join() !== account.effects.toSorted().join())
    return broken(promise, `${effects.length} are stored, ${account.effects.length} were reported`).violation
  const acked = [...account.ends].flatMap(([id, how]) => (how === 'acked' ? id : []))
  const missing = isTransactional ? acked.find((id) => !effects.includes(id)) : undefined
  return missing === undefined ? null : broken(promise, `#${shortId(missing)} has had none`).violation
}

function twice(texts: readonly string[]): string | null {
  return texts.find((text, nth) => texts.indexOf(text) !== nth) ?? null
}

function bookedLine({ hour }: Account, entry: Entry): string {
  const { leaseEnds, dueAt, ...others } = entry
  const due =
    dueAt === null ? 'fresh' : dueAt === Number.POSITIVE_INFINITY ? 'never' : dueAt <= hour ? 'due' : 'later'
  return storedLine({ ...others, seq: entry.seq ?? '', isLeaseOver: leaseEnds < hour, due })
}

/** A message in a few words: `#1 A1 due, 2 deliveries, 1 attempt`. */
export function storedLine(row: MessageRow): string {
  return [
    `#${shortId(row.id)}`,
    row.isParked ? 'parked' : row.isFailed ? 'quarantined' : row.due,
    row.key === null ? '' : `of ${row.key}`,
    row.laterKey === null ? '' : `joins ${row.laterKey}`,
    row.isFailed && row.due !== 'never' ? row.due : '',
    row.token === null ? '' : `leased by ${shortToken(row.token)}${row.isLeaseOver ? ' (over)' : ''}`,
    counts(row),
    row.fired === null ? '' : `fired ${row.fired}`,
  ]
    .filter((part) => part !== '')
    .join(' ')
}

export function deadLine(row: DeadRow): string {
  return `#${shortId(row.id)} dead ${counts(row)}`
}

function counts({ deliveries, attempts, cycles, timer }: DeadRow): string {
  return `d${deliveries} a${attempts}${cycles > 0 ? ` c${cycles}` : ''}${timer === null ? '' : ` timer ${timer}`}`
}
