import type { LogEntry } from './core/log.ts'

/** The default: warnings and errors, one line each, to the console. */
export function consoleLogger({ level, message, fields, error }: LogEntry): void {
  if (level !== 'warn' && level !== 'error') return
  const details = error === undefined ? [fields] : [fields, error]
  // biome-ignore lint/suspicious/noConsole: this is the one place where the library speaks without being given a voice
  console[level](`[postbox] ${message}`, ...details)
}
