import { logEntryOf } from './core/event-log.ts'
import type { OutboxEvent, Telling } from './core/events.ts'
import type { Logger } from './core/log.ts'
import { hear, type OnEvent } from './hear.ts'

export interface TellingParts {
  readonly onEvent?: OnEvent | undefined
  /** One that never throws. */
  readonly logger: Logger
}

/** One stream, heard twice: `onEvent` gets every event, the log those that its table prints. */
export function createTelling({ onEvent, logger }: TellingParts): Telling {
  return Object.freeze({
    tell(event: OutboxEvent) {
      hear(onEvent, event, logger)
      const entry = logEntryOf(event)
      if (entry !== null) logger(entry)
    },
    isHeard: onEvent !== undefined,
  })
}
