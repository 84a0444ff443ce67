export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** One line of the log. A function takes it, because loggers disagree about the order of their arguments. */
export interface LogEntry {
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly error?: unknown
  /** The kind of the event that this line prints. */
  readonly event?: string
}

export type Logger = (entry: LogEntry) => void
