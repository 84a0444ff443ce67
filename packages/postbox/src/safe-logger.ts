import { consoleLogger } from './console-logger.ts'
import type { Logger } from './core/log.ts'

/** A logger that throws must not take a consumer down with it. `false`: nothing is logged; absent: the console is. */
export function safeLogger(given: Logger | false | undefined): Logger {
  const logger = given === false ? () => {} : (given ?? consoleLogger)
  return (entry) => {
    try {
      // A function that returns a promise passes for a Logger, too.
      Promise.resolve<unknown>(logger(entry)).catch(() => {})
    } catch {
      // There is nowhere left to say it.
    }
  }
}
