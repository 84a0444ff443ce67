import type { OutboxEvent } from './core/events.ts'
import type { Logger } from './core/log.ts'
import { isThenable } from './core/thenable.ts'

export type OnEvent = (event: OutboxEvent) => unknown

/**
 * Gives an event to the application's `onEvent`. Whatever it does is its own trouble: what it throws is logged and goes no further, a
 * promise is not waited for. The logger must be one that never throws.
 */
export function hear(onEvent: OnEvent | undefined, event: OutboxEvent, logger: Logger): void {
  if (onEvent === undefined) return
  const failed = (error: unknown): void =>
    logger({ level: 'warn', message: 'onEvent failed', fields: { event: event.kind }, error })
  try {
    const answer = onEvent(event)
    // Not for what is no promise: there is an event for each message, or three.
    if (isThenable(answer)) Promise.resolve(answer).catch(failed)
  } catch (error) {
    failed(error)
  }
}
