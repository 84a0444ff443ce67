import type { Headers } from '../core/headers.ts'
import { isRecord } from '../core/validate.ts'

const noHeaders: Headers = Object.freeze({})

/** jsonb as text → headers. Parsed here and not by the client, which may be told to parse json in its own way. */
export function headersFrom(text: string | null): Headers {
  if (text === null) return noHeaders
  const headers: unknown = JSON.parse(text)
  // A foreign writer may have stored anything that jsonb takes.
  return isRecord(headers) ? Object.freeze(headers as Headers) : noHeaders
}

/** base64 → bytes. */
export function bytesFrom(base64: string): Uint8Array {
  return Buffer.from(base64, 'base64')
}

/** Milliseconds as text → Date. */
export function dateFrom(epochMs: string): Date {
  return new Date(Number(epochMs))
}

/** bigint as text → number: generations are small. */
export function numberFrom(text: string | null): number | null {
  return text === null ? null : Number(text)
}
