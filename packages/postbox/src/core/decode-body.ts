import { type Codec, isJson, isText } from './codec.ts'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The inverse of `encodeBody`. Throws on bytes that are not what their content type says. */
export function decodeBody(bytes: Uint8Array, contentType: string | null, codec?: Codec): unknown {
  if (codec !== undefined && contentType === codec.contentType) return codec.decode(bytes)
  if (contentType === null) return bytes.byteLength === 0 ? null : JSON.parse(decoder.decode(bytes))
  if (isJson(contentType)) return JSON.parse(decoder.decode(bytes))
  if (isText(contentType)) return decoder.decode(bytes)
  return bytes
}
