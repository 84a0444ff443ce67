import type { Headers } from './headers.ts'
import type { DeadReason } from './settlement.ts'
import type { WarningCode } from './warning-catalogue.ts'

/** What every event about one message says. */
export interface OfMessage {
  readonly queue: string
  /** The subscription's name. */
  readonly handler: string
  readonly id: string
  readonly seq: string
  /** 1 on the first run. */
  readonly attempt: number
  /** Times the message was delivered, this one included; of one that was not run any more, without. */
  readonly deliveries: number
}

/** How long the handler ran; null: it did not run. */
interface Timed {
  readonly durationMs: number | null
}

export interface PublishedEvent {
  readonly kind: 'published'
  readonly queue: string
  /** Rows written: 0 when a waiting timer was kept, and when it failed. */
  readonly count: number
  /** Of the bodies. */
  readonly bytes: number
  readonly durationMs: number
  /** Only when it failed. */
  readonly error?: unknown
}

/** After each claim, for each queue that was asked for; empty ones, too. */
export interface ClaimedEvent {
  readonly kind: 'claimed'
  readonly queue: string
  readonly handler: string
  readonly count: number
}

export interface DispatchedEvent extends OfMessage {
  readonly kind: 'dispatched'
  readonly bytes: number
  /** An earlier delivery of it ended without an outcome: it is run alone. */
  readonly isSuspect: boolean
}

export interface AckedEvent extends OfMessage, Timed {
  readonly kind: 'acked'
  /** Messages that its handler published with it; those that met a waiting timer are among them. */
  readonly followOns: number
}

export interface RetriedEvent extends OfMessage, Timed {
  readonly kind: 'retried'
  readonly delayMs: number
  readonly error: unknown
}

export interface SnoozedEvent extends OfMessage, Timed {
  readonly kind: 'snoozed'
  readonly delayMs: number
}

export interface ReleasedEvent extends OfMessage, Timed {
  readonly kind: 'released'
}

/** All that an alert needs. */
export interface DeadEvent extends OfMessage, Timed {
  readonly kind: 'dead'
  readonly reason: DeadReason
  /** Runs that failed. */
  readonly attempts: number
  readonly error: unknown
  readonly key: string | null
  /** It holds its key, and what comes behind it waits, until somebody decides: see `outbox.keys`. */
  readonly isParked: boolean
  readonly headers: Headers
  /** The headers `type` and `source`; null where the message has none. */
  readonly type: string | null
  readonly source: string | null
  /** Where it was to go: the header `target`, else the queue. */
  readonly target: string
}

export interface DlqWrittenEvent extends OfMessage {
  readonly kind: 'dlq_written'
  readonly reason: DeadReason
  /** The dead letters refused it: it stays in the table of messages, and is delivered no more. */
  readonly isQuarantined: boolean
}

export interface LeaseLostEvent extends OfMessage, Timed {
  readonly kind: 'lease_lost'
  /** What could not be written: its end, a retry; or nothing yet, its handler runs. */
  readonly phase: 'terminal' | 'retry' | 'running'
  /** It may have been written after all: the answer was lost with the connection. */
  readonly mayHaveLanded: boolean
}

export interface LeaseRenewedEvent {
  readonly kind: 'lease_renewed'
  readonly count: number
}

export interface SettleFailedEvent {
  readonly kind: 'settle_failed'
  readonly write: string
  readonly messages: number
  readonly error: unknown
  /** When it is tried again; null: not any more. The message is delivered again when its lease ends. */
  readonly delayMs: number | null
  /** Where it is about one message. */
  readonly queue?: string
  readonly handler?: string
  readonly id?: string
  readonly seq?: string
}

export interface FollowOnFailedEvent extends OfMessage {
  readonly kind: 'follow_on_failed'
  readonly error: unknown
}

export interface DrainTimeoutEvent {
  readonly kind: 'drain_timeout'
  readonly stopTimeoutMs: number
  /** Still in hand. */
  readonly messages: number
}

export interface ListenerLostEvent {
  readonly kind: 'listener_lost'
  readonly error: unknown
  readonly delayMs: number
}

export interface ListenerRestoredEvent {
  readonly kind: 'listener_restored'
}

/** This process has learnt that the queue is paused: it delivers nothing of it until it is resumed. */
export interface QueuePausedEvent {
  readonly kind: 'queue_paused'
  readonly queue: string
  readonly handler: string
  /** Who paused it; null: the table does not say. */
  readonly by: string | null
  /** When, by the database's clock. */
  readonly at: Date
}

export interface QueueResumedEvent {
  readonly kind: 'queue_resumed'
  readonly queue: string
  readonly handler: string
  /** Who resumed it; null: the table does not say. */
  readonly by: string | null
  readonly at: Date | null
}

/** What became of messages cannot be written: nothing is claimed until it can. */
export interface BreakerOpenedEvent {
  readonly kind: 'breaker_opened'
  readonly error: unknown
}

export interface BreakerClosedEvent {
  readonly kind: 'breaker_closed'
}

export interface ClaimFailedEvent {
  readonly kind: 'claim_failed'
  readonly error: unknown
  readonly delayMs: number
}

export interface WarningEvent {
  readonly kind: 'warning'
  readonly code: WarningCode
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly error?: unknown
}

export type { WarningCode }

/** Everything that an outbox tells of itself, told apart by `kind`. New kinds may be added: ignore those that you do not know. */
export type OutboxEvent =
  | PublishedEvent
  | ClaimedEvent
  | DispatchedEvent
  | AckedEvent
  | RetriedEvent
  | SnoozedEvent
  | ReleasedEvent
  | DeadEvent
  | DlqWrittenEvent
  | LeaseLostEvent
  | LeaseRenewedEvent
  | SettleFailedEvent
  | FollowOnFailedEvent
  | DrainTimeoutEvent
  | ListenerLostEvent
  | ListenerRestoredEvent
  | QueuePausedEvent
  | QueueResumedEvent
  | BreakerOpenedEvent
  | BreakerClosedEvent
  | ClaimFailedEvent
  | WarningEvent

/** Where events go: to the application and to the log. Never throws, never waits. */
export interface Telling {
  tell(event: OutboxEvent): void
  /** Somebody takes events that are not logged. */
  readonly isHeard: boolean
}

type WithoutHandler<E> = E extends unknown ? Omit<E, 'handler'> : never

/** As the loops tell it: who handles a queue is added on the way. */
export type Told = WithoutHandler<OutboxEvent>

/** Where the loops tell what happens. Never throws, never waits. */
export interface Teller {
  tell(event: Told): void
  /** Somebody takes events that are not logged: asked before one is built for each message. */
  readonly isHeard: boolean
}
