import { errorText } from './error-text.ts'
import { toJson } from './json.ts'
import { hasLoneSurrogate } from './text.ts'

/** Turns bodies into bytes and back. `decode(encode(x))` is what handlers receive. */
export interface Codec {
  /** Stored with the message, and how the bytes are told apart later. */
  readonly contentType: string
  encode(body: unknown): Uint8Array
  decode(bytes: Uint8Array): unknown
}

export interface EncodeOptions {
  /** The content type the caller asks for. */
  readonly label?: string | undefined
  readonly codec?: Codec | undefined
  /** What happens to a Date, a Map and their like, which JSON changes: a schema will notice, nothing else would. */
  readonly lossy: 'refuse' | 'allow'
}

/** A body as it will be stored, or why it cannot be. `contentType` null: a null body, or the default, JSON. */
export type EncodeResult =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly contentType: string | null }
  | { readonly ok: false; readonly problem: string }

const jsonType = 'application/json'
const textType = 'text/plain; charset=utf-8'
const bytesType = 'application/octet-stream'

/**
 * null becomes no bytes at all; bytes pass as they are; a string is text; the rest is JSON. The JSON content type is
 * implied, not stored: it would cost 56 bytes of WAL per message for a constant (measured: 323 against 267).
 */
export function encodeBody(body: unknown, options: EncodeOptions): EncodeResult {
  const { label, codec } = options
  if (codec !== undefined) return encodeWith(codec, body, label)
  if (body === null) return labelled(new Uint8Array(0), label, { fits: () => false, stored: null })
  if (body instanceof Uint8Array) return labelled(body, label, { fits: () => true, stored: bytesType })
  if (typeof body === 'string') return encodeText(body, label)
  const json = toJson(body, options.lossy)
  if (!json.ok) return { ok: false, problem: `${json.path} ${json.problem}` }
  const bytes = bytesOf(json.text)
  if (label === undefined || label === jsonType) return { ok: true, bytes, contentType: null }
  return labelled(bytes, label, { fits: isJson, stored: null })
}

/** Not by a TextEncoder: that makes an ArrayBuffer of each text, which takes five times as long for a small one. */
function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'utf8')
}

function encodeText(text: string, label: string | undefined): EncodeResult {
  // A NUL is fine here: the body is bytes, not text. Half an emoji is not: UTF-8 would replace it.
  if (hasLoneSurrogate(text))
    return { ok: false, problem: 'body contains an unpaired surrogate (half an emoji)' }
  return labelled(bytesOf(text), label, { fits: isText, stored: textType })
}

function encodeWith(codec: Codec, body: unknown, label: string | undefined): EncodeResult {
  try {
    const bytes: unknown = codec.encode(body)
    if (!(bytes instanceof Uint8Array))
      return { ok: false, problem: 'body was not made into a Uint8Array by its codec' }
    return labelled(bytes, label, { fits: (type) => type === codec.contentType, stored: codec.contentType })
  } catch (error) {
    return { ok: false, problem: `body was refused by its codec: ${errorText(error)}` }
  }
}

interface Labelling {
  readonly fits: (contentType: string) => boolean
  readonly stored: string | null
}

function labelled(bytes: Uint8Array, label: string | undefined, { fits, stored }: Labelling): EncodeResult {
  if (label === undefined) return { ok: true, bytes, contentType: stored }
  if (fits(label)) return { ok: true, bytes, contentType: label }
  return {
    ok: false,
    problem: `body is ${stored ?? (bytes.byteLength === 0 ? 'null' : jsonType)}, not "${label}"`,
  }
}

export function isJson(contentType: string): boolean {
  const type = mediaType(contentType)
  return type === jsonType || type.endsWith('+json')
}

export function isText(contentType: string): boolean {
  return mediaType(contentType).startsWith('text/')
}

function mediaType(contentType: string): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase()
}
