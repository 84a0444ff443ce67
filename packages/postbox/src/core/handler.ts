import type { Message } from './message.ts'
import type { Bodies } from './queues.ts'

/** What a handler gets beside the message. */
export interface Context {
  /** Aborts when the process stops and the handler's time is up. Pass it on to whatever you await. */
  readonly signal: AbortSignal
}

/** The message of a queue. */
export type MessageFor<B extends Bodies, Q extends keyof B & string> = Message<Q, B[Q]['out']>

/** Returning (anything) acknowledges the message; throwing fails it. */
export type Handler<B extends Bodies, Q extends keyof B & string> = (
  message: MessageFor<B, Q>,
  context: Context,
) => unknown
