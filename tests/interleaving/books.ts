// What the books of the tester are made of. Pure.
import type { DeadRow, Lease, Made, Told, Violation } from './terms.ts'

/** A message as the books have it. Times are hours since the scenario began. */
export interface Entry {
  readonly id: string
  /** null: nobody has told it yet (a follow-on's, a replayed one's). */
  readonly seq: string | null
  readonly timer: string | null
  readonly fired: string | null
  readonly token: string | null
  readonly leaseEnds: number
  readonly attempts: number
  readonly deliveries: number
  /** Before the last claim. */
  readonly deliveriesBefore: number
  /** null: fresh. */
  readonly dueAt: number | null
  readonly isFailed: boolean
  readonly cycles: number
  readonly key: string | null
  readonly laterKey: string | null
  readonly isParked: boolean
}

export interface OpenTransaction {
  readonly hour: number
  readonly told: readonly Told[]
}

export interface Account {
  readonly hour: number
  readonly messages: readonly Entry[]
  readonly dead: readonly DeadRow[]
  readonly effects: readonly string[]
  /** Who has paused the queue; null: it is not paused. */
  readonly pausedBy: string | null
  /** How each message that is gone came to its end. */
  readonly ends: ReadonlyMap<string, string>
  readonly replays: ReadonlySet<string>
  readonly open: ReadonlyMap<string, OpenTransaction>
  /** Of each key, the last message whose handler was started. */
  readonly started: ReadonlyMap<string, string>
  /** The places of messages with a key that somebody could see, by key. */
  readonly seen: ReadonlyMap<string, readonly string[]>
}

/** Either the books after it, or why it cannot have happened. */
export type Booked = { readonly account: Account } | { readonly violation: Violation }

export interface Entering {
  readonly account: Account
  readonly hour: number
  readonly wasAlone: boolean
}

export type Entered = Exclude<
  Told,
  { readonly kind: 'began' | 'committed' | 'rolled back' | 'an hour passed' | 'failed' }
>

export type Of<Kind extends Entered['kind']> = Entered & { readonly kind: Kind }

/** The one message of a timer's name that lives. */
export function holderOf({ messages }: Account, timer: string): Entry | undefined {
  return messages.find((entry) => entry.timer === timer && !entry.isFailed)
}

export function bySeq({ messages }: Account, seq: string): Entry | undefined {
  return messages.find((entry) => entry.seq === seq)
}

export function entryOf(
  { id, timer, delayHours, key = null }: Made,
  hour: number,
  seq: string | null,
): Entry {
  const fixed = { fired: null, token: null, leaseEnds: 0, attempts: 0, deliveries: 0, deliveriesBefore: 0 }
  const dueAt = delayHours === null ? null : hour + delayHours
  const keys = delayHours === null ? { key, laterKey: null } : { key: null, laterKey: key }
  return { ...fixed, ...keys, id, seq, timer, dueAt, isFailed: false, isParked: false, cycles: 0 }
}

export function changed(account: Account, entry: Entry, changes: Partial<Entry>): Booked {
  const messages = account.messages.map((one) => (one === entry ? { ...entry, ...changes } : one))
  return { account: { ...account, messages } }
}

export function without(account: Account, entry: Entry): Account {
  return { ...account, messages: account.messages.filter((one) => one !== entry) }
}

export function ended(account: Account, entry: Entry, how: string): Account {
  return { ...without(account, entry), ends: new Map(account.ends).set(entry.id, how) }
}

export function stateOf(account: Account, { seq, id }: Lease): string {
  const entry = bySeq(account, seq)
  if (entry?.isFailed) return 'quarantined'
  if (entry?.token) return `leased by ${shortToken(entry.token)}`
  if (entry !== undefined) return 'waiting'
  if (account.dead.some((letter) => letter.id === id)) return 'dead'
  return account.ends.get(id) ?? 'unknown'
}

export function broken(promise: string, details: string): { readonly violation: Violation } {
  return { violation: { promise, details } }
}

/** Made of a number by `idOf`. */
export function shortId(id: string): string {
  return String(Number(id.slice(-4)))
}

export function idOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
}

/** The letter of the session, and which of its claims it was. */
export function tokenOf(letter: string, claim: number): string {
  return `${letter.toLowerCase()}0000000-0000-4000-8000-${String(claim).padStart(12, '0')}`
}

export function shortToken(token: string): string {
  const isOurs = token.slice(1, 8) === '0000000'
  return isOurs ? `${token[0]!.toUpperCase()}${Number(token.slice(-4))}` : token.slice(0, 4)
}
