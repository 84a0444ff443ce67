import { eventCatalogue, type Printed } from './event-catalogue.ts'
import type { OutboxEvent } from './events.ts'
import type { LogEntry } from './log.ts'

/** The line that an event is in the log; null: it is not logged. */
export function logEntryOf(event: OutboxEvent): LogEntry | null {
  // Found by its own kind: the compiler cannot tell that they belong together.
  const printed = eventCatalogue[event.kind] as Printed<OutboxEvent>
  const level = typeof printed.level === 'object' ? (printed.level?.of(event) ?? null) : printed.level
  if (level === null) return null
  const message = typeof printed.message === 'string' ? printed.message : printed.message(event)
  const entry = { level, message, fields: fieldsOf(event), event: event.kind }
  const thrown = 'error' in event ? event.error : undefined
  return thrown === undefined ? entry : { ...entry, error: thrown }
}

function fieldsOf(event: OutboxEvent): Readonly<Record<string, unknown>> {
  const { kind: _kind, error: _error, ...said } = event as OutboxEvent & { readonly error?: unknown }
  if (event.kind === 'warning') return { code: event.code, ...event.fields }
  const fields = Object.entries(said).map(([name, value]) => [name, printedValue(name, value)])
  return Object.fromEntries(fields)
}

/** Whole milliseconds are enough to read, and headers may hold secrets. */
function printedValue(name: string, value: unknown): unknown {
  if (name === 'headers') return Object.keys(value as object)
  return typeof value === 'number' ? Math.round(value) : value
}
