export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** One line of the log. A function takes it, because loggers disagree about the order of their arguments. */
export interface LogEntry {
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly error?: unknown
}

export type Logger = (entry: LogEntry) => void
