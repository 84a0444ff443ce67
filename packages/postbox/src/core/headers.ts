import { OutboxError } from './errors.ts'
import { show } from './show.ts'
import { byteLength, textProblem } from './text.ts'
import { isRecord, name as nameOf, type Shape } from './validate.ts'

export type Headers = Readonly<Record<string, string>>

export const contentTypeHeader = 'content-type'
export const correlationIdHeader = 'correlation-id'
export const sourceHeader = 'source'

/** The caller's headers, checked. The envelope's own names are told whatever their case; others stay as written. */
export function readHeaders(headers: unknown): Map<string, string> {
  const read = new Map<string, string>()
  if (headers === undefined) return read
  if (!isRecord(headers) || !isPlain(headers)) {
    throw invalid(`expected \`headers\` to be a plain object of strings, got ${show(headers)}`)
  }
  for (const [name, value] of Object.entries(headers)) {
    assertHeader(name, value)
    const lower = name.toLowerCase()
    if (Object.hasOwn(ownChecks, lower)) assertOwn(read, lower as OwnHeader, value as string)
    read.set(Object.hasOwn(ownChecks, lower) ? lower : name, value as string)
  }
  return read
}

/**
 * Takes one of the envelope's own headers out of the caller's. Naming the same value twice is accepted, naming two is a
 * contradiction that a consumer would have to guess about.
 */
export function takeOwn(
  read: Map<string, string>,
  name: string,
  option: string | undefined,
): string | undefined {
  const header = read.get(name)
  read.delete(name)
  if (header !== undefined && option !== undefined && header !== option) {
    throw invalid(`header \`${name}\` is ${show(header)}, but the option says ${show(option)}`)
  }
  return option ?? header
}

/** The headers to store; null when there is nothing to say, which is the usual case and costs nothing. */
export function headersToStore(read: ReadonlyMap<string, string>, maxBytes: number): Headers | null {
  if (read.size === 0) return null
  const headers = Object.fromEntries(read)
  const bytes = byteLength(JSON.stringify(headers))
  if (bytes <= maxBytes) return headers
  throw invalid(`expected \`headers\` to be at most ${maxBytes} bytes as JSON, got ${bytes} bytes`)
}

/** The limits of the options that these headers stand for. */
const ownChecks = { [contentTypeHeader]: nameOf(255), [correlationIdHeader]: nameOf(1024) } satisfies Shape

type OwnHeader = keyof typeof ownChecks

function assertOwn(read: ReadonlyMap<string, string>, name: OwnHeader, value: string): void {
  const problem = ownChecks[name](value)
  if (problem !== null) throw invalid(`expected header \`${name}\` ${problem}, got ${show(value)}`)
  const other = read.get(name)
  if (other !== undefined && other !== value) {
    throw invalid(`header \`${name}\` is given twice: ${show(other)} and ${show(value)}`)
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

function assertHeader(name: string, value: unknown): void {
  const inName = name === '' ? 'is empty' : textProblem(name)
  if (inName !== null) throw invalid(`expected header names to be storable text, but ${show(name)} ${inName}`)
  if (typeof value !== 'string')
    throw invalid(`expected header \`${name}\` to be a string, got ${show(value)}`)
  const inValue = textProblem(value)
  if (inValue !== null)
    throw invalid(`expected header \`${name}\` to be storable text, but it ${inValue}: ${show(value)}`)
}

function invalid(sentence: string): OutboxError {
  return new OutboxError('OUTBOX_INVALID_HEADERS', sentence)
}
