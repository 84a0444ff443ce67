// The words of the interleaving tester: what sessions do, what they are told, and what lies in the tables.
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'

/** A lease as its holder knows it. */
export interface Lease {
  readonly seq: string
  readonly id: string
  readonly token: string
  readonly attempts: number
  /** How many were counted before its claim. */
  readonly deliveriesBefore: number
  /** In an ordered queue. */
  readonly key?: string | null
}

/** A message that somebody asked to be written, in the words of the account. */
export interface Made {
  readonly id: string
  readonly timer: string | null
  /** null: fresh, due at once. */
  readonly delayHours: number | null
  /** In an ordered queue. */
  readonly key?: string | null
}

/** What a lease's holder may report of its row. */
export type Ending =
  | { readonly kind: 'acked'; readonly followOns: readonly Made[] }
  | { readonly kind: 'extended' }
  /** The delivery of a suspect, which is about to be run. */
  | { readonly kind: 'counted' }
  | { readonly kind: 'released'; readonly takesName: boolean }
  | { readonly kind: 'snoozed'; readonly takesName: boolean; readonly delayHours: number }
  | { readonly kind: 'retried'; readonly takesName: boolean; readonly delayHours: number }
  | { readonly kind: 'buried' }
  | { readonly kind: 'quarantined' }
  | { readonly kind: 'parked' }
  | { readonly kind: 'fenced' }

/** What a session was told by the database, in the order in which it was told. What it was told in a transaction counts when that commits. */
export type Told =
  | { readonly kind: 'began' | 'committed' | 'rolled back' }
  | { readonly kind: 'an hour passed' }
  | { readonly kind: 'failed'; readonly sqlState: string; readonly message: string }
  | {
      readonly kind: 'claimed'
      readonly lease: Lease
      /** This one included, whether the claim has counted it or not. */
      readonly deliveries: number
      readonly keepsName: boolean
    }
  /** There was room for so many more. `isSure`: nobody else can have been in the way. */
  | { readonly kind: 'claimed enough'; readonly room: number; readonly isSure?: true }
  /** Its handler: of a key, one at a time. */
  | { readonly kind: 'started'; readonly lease: Lease }
  /** So many that were due have taken their place in their key. */
  | { readonly kind: 'joined'; readonly count: number }
  | { readonly kind: 'written'; readonly lease: Lease; readonly ending: Ending }
  | { readonly kind: 'lease lost'; readonly lease: Lease; readonly ending: Ending }
  | {
      readonly kind: 'armed'
      readonly made: Made
      readonly conflict: 'none' | 'keep' | 'replace'
      readonly seq: string
    }
  | { readonly kind: 'kept'; readonly timer: string; readonly conflict: 'keep' | 'replace' }
  | { readonly kind: 'cancelled'; readonly seq: string; readonly timer: string }
  | { readonly kind: 'nothing to cancel'; readonly timer: string }
  | { readonly kind: 'replayed'; readonly id: string }
  | {
      readonly kind: 'not replayed'
      readonly id: string
      readonly because: 'not_found' | 'already_replayed' | 'timer_conflict'
    }
  /** `isDone`: by this very step; else somebody was before. */
  | { readonly kind: 'paused'; readonly by: string; readonly isDone: boolean }
  | { readonly kind: 'resumed'; readonly by: string; readonly isDone: boolean }
  | { readonly kind: 'worked'; readonly id: string }

/** What a step may do: statements on the session's own connection. */
export interface Session {
  readonly letter: string
  readonly names: Names
  /** What it has claimed and not yet settled, as far as it knows. */
  readonly hand: readonly Lease[]
  readonly isInTransaction: boolean
  /** The message that its transaction is about. */
  readonly handled: Lease | null
  /** A token that nobody has had. */
  newToken(): string
  /** Sent as it is, but for what a broken twin changes, and for the patience of who waits for a timer's name. */
  run<Row>(statement: Statement<Row>): Promise<readonly Row[]>
  /** SQL of the scenario itself. */
  work(text: string, values: readonly unknown[]): Promise<void>
  begin(): Promise<Told>
  end(how: 'commit' | 'rollback'): Promise<Told>
  takeInHand(leases: readonly Lease[]): void
  letGo(leases: readonly Lease[]): void
  handle(lease: Lease): void
  passHour(): void
  /** What it has made before, in this order; made now if it has not. */
  recall<T>(what: string, make: () => T): T
}

export interface Step {
  readonly label: string
  /** Returns nothing when there is nothing to do, as for who settles with an empty hand. */
  readonly perform: (session: Session) => Promise<readonly Told[]>
  /** Waiting for somebody's lock counts as a violation. */
  readonly neverWaits?: true
  /** Does not wait for a lock until it is free, but fails in a moment. */
  readonly givesUp?: true
}

/** A row to begin with. */
export interface Given {
  readonly place: 'live' | 'dead' | 'quarantined'
  readonly id: string
  readonly timer: string | null
  /** Due at once in the due lane; else fresh. */
  readonly isDue: boolean
  /** Deliveries that ended without an outcome. */
  readonly silent?: number
  /** In an ordered queue; `isJoining`: it takes its place in its key when it is due. */
  readonly key?: string
  readonly isJoining?: true
}

export interface Scenario {
  /** For POSTBOX_ORDER. */
  readonly key: string
  readonly title: string
  readonly given: readonly Given[]
  /** By the session's letter. */
  readonly programs: Readonly<Record<string, readonly Step[]>>
  /** Sessions that are a further connection of another one's process: `{ B: 'A' }`. They have the same messages in hand. */
  readonly lanes?: Readonly<Record<string, string>>
  /** Every message is handled in the end, and has left exactly one effect. */
  readonly isTransactional?: true
  /** The queue is in the order of its keys. */
  readonly isOrdered?: true
}

export interface MessageRow {
  readonly seq: string
  readonly id: string
  readonly timer: string | null
  readonly fired: string | null
  readonly token: string | null
  readonly isLeaseOver: boolean
  readonly attempts: number
  readonly deliveries: number
  readonly due: 'fresh' | 'due' | 'later' | 'never'
  readonly isFailed: boolean
  readonly cycles: number
  readonly key: string | null
  /** The key that it will have when it is due. */
  readonly laterKey: string | null
  /** Dead, and holds its key. */
  readonly isParked: boolean
}

export type DeadRow = Pick<MessageRow, 'id' | 'timer' | 'attempts' | 'deliveries' | 'cycles'>

/** What everybody can see. */
export interface Snapshot {
  readonly messages: readonly MessageRow[]
  readonly dead: readonly DeadRow[]
  /** The message that each effect is of. */
  readonly effects: readonly string[]
  readonly pausedBy: string | null
}

/** A step that has come to its end. */
export interface Finished {
  readonly letter: string
  readonly step: Step
  readonly told: readonly Told[]
  /** It had to wait for somebody's lock. */
  readonly waited: boolean
  /** While it ran, nobody else had a transaction open, or a step that waits. */
  readonly wasAlone: boolean
}

export interface Violation {
  /** Which promise is broken, in a few words. */
  readonly promise: string
  readonly details: string
}
