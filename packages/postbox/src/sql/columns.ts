import type { Headers } from '../core/headers.ts'

/** jsonb as text → headers. Parsed here and not by the client, which may be told to parse json in its own way. */
export function headersFrom(text: string | null): Headers {
  return text === null ? {} : (JSON.parse(text) as Headers)
}

/** Milliseconds as text → Date. */
export function dateFrom(epochMs: string): Date {
  return new Date(Number(epochMs))
}

/** bigint as text → number: generations are small. */
export function numberFrom(text: string | null): number | null {
  return text === null ? null : Number(text)
}
