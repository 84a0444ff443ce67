import type { Message } from './message.ts'

/** What a handler gets beside the message. */
export interface Context {
  /** Aborts when the process stops and the handler's time is up. Pass it on to whatever you await. */
  readonly signal: AbortSignal
}

/** Returning (anything) acknowledges the message; throwing fails it. */
export type Handler<Queue extends string = string, Body = unknown> = (
  message: Message<Queue, Body>,
  context: Context,
) => unknown
