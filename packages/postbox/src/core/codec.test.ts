import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Codec, type EncodeOptions, encodeBody } from './codec.ts'
import { decodeBody } from './decode-body.ts'

// Any UTF-16 unit that stands alone. Not `unit: 'binary'`, which takes seconds to set up.
const anyUnit = fc
  .nat(0xffff)
  .map((code) => (code >= 0xd800 && code <= 0xdfff ? '🚚' : String.fromCharCode(code)))

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

function encoded(body: unknown, options: Partial<EncodeOptions> = {}) {
  const result = encodeBody(body, { lossy: 'refuse', ...options })
  if (!result.ok) throw new Error(result.problem)
  return result
}

function problem(body: unknown, options: Partial<EncodeOptions> = {}): string | null {
  const result = encodeBody(body, { lossy: 'refuse', ...options })
  return result.ok ? null : result.problem
}

const reversing: Codec = {
  contentType: 'application/x-reversed',
  encode: (body) => Buffer.from(String(body)).reverse(),
  decode: (bytes) => Buffer.from(bytes).reverse().toString(),
}

describe('encodeBody', () => {
  // U-ENC-01
  test('an object becomes JSON, whose content type is implied', () => {
    const { bytes, contentType } = encoded({ orderId: 1, name: 'é' })

    expect([text(bytes), contentType]).toEqual(['{"orderId":1,"name":"é"}', null])
  })

  // U-ENC-03
  test('bytes pass as they are, the same object', () => {
    const body = Buffer.from([0, 255, 1]).subarray(1)
    const { bytes, contentType } = encoded(body)

    expect(bytes).toBe(body)
    expect(contentType).toBe('application/octet-stream')
  })

  // U-PUB-16
  test('null becomes no bytes and no content type', () => {
    const { bytes, contentType } = encoded(null)

    expect([bytes.byteLength, contentType]).toEqual([0, null])
  })

  test('a string becomes text, NUL included', () => {
    const { bytes, contentType } = encoded('a\u0000é')

    expect([text(bytes), contentType]).toEqual(['a\u0000é', 'text/plain; charset=utf-8'])
  })

  test('an empty string is told from null by its content type', () => {
    const { bytes, contentType } = encoded('')

    expect(decodeBody(bytes, contentType)).toBe('')
  })

  test('half an emoji in a string is refused, in JSON it is escaped', () => {
    expect(problem('\ud83d')).toMatch(/unpaired surrogate/)
    expect(decodeBody(encoded({ half: '\ud83d' }).bytes, null)).toEqual({ half: '\ud83d' })
  })

  test('what JSON cannot hold is refused with its path', () => {
    expect(problem({ lines: [{ price: 1n }] })).toMatch(/^body\.lines\[0\]\.price is a bigint/)
    expect(problem(undefined)).toBe('body is undefined')
  })

  // U-ENC-05
  test.each<[unknown, string, string | null]>([
    [{ a: 1 }, 'application/json', null],
    [{ a: 1 }, 'Application/JSON; charset=utf-8', 'Application/JSON; charset=utf-8'],
    [{ a: 1 }, 'application/cloudevents+json', 'application/cloudevents+json'],
    ['<p>', 'text/html', 'text/html'],
    ['a', ' TEXT/PLAIN ;charset=utf-8', ' TEXT/PLAIN ;charset=utf-8'],
    [Buffer.from('x'), 'image/png', 'image/png'],
    [Buffer.from('{}'), 'application/json', 'application/json'],
  ])('a body takes a label that fits it (case %#)', (body, label, contentType) => {
    expect(encoded(body, { label }).contentType).toBe(contentType)
  })

  // U-ENC-05
  test.each<[unknown, string, string]>([
    [{ a: 1 }, 'text/plain', 'body is application/json, not "text/plain"'],
    [{ a: 1 }, 'application/jsonlines', 'body is application/json, not "application/jsonlines"'],
    ['a', 'application/json', 'body is text/plain; charset=utf-8, not "application/json"'],
    [null, 'application/json', 'body is null, not "application/json"'],
    [{ a: 1 }, '', 'body is application/json, not ""'],
  ])('a body refuses a label that lies about it (case %#)', (body, label, sentence) => {
    expect(problem(body, { label })).toBe(sentence)
  })

  test('a codec encodes everything, null and bytes included', () => {
    expect(text(encoded('abc', { codec: reversing }).bytes)).toBe('cba')
    expect(text(encoded(null, { codec: reversing }).bytes)).toBe('llun')
    expect(encoded(null, { codec: reversing }).contentType).toBe('application/x-reversed')
  })

  test('a codec accepts its own label and no other', () => {
    expect(problem('a', { codec: reversing, label: 'application/x-reversed' })).toBeNull()
    expect(problem('a', { codec: reversing, label: 'text/plain' })).toBe(
      'body is application/x-reversed, not "text/plain"',
    )
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('too odd')
      },
      'body was refused by its codec: Error: too odd',
    ],
    ['gives a string', () => 'abc', 'body was not made into a Uint8Array by its codec'],
    ['gives nothing', () => undefined, 'body was not made into a Uint8Array by its codec'],
  ])('a codec that %s is a problem, not an exception', (_title, encode, sentence) => {
    expect(problem('a', { codec: { ...reversing, encode: encode as never } })).toBe(sentence)
  })

  test('a codec that throws what cannot be printed is a problem, not an exception', () => {
    const encode = (): never => {
      throw Object.create(null)
    }

    expect(problem('a', { codec: { ...reversing, encode } })).toMatch(/refused by its codec/)
  })
})

describe('decodeBody', () => {
  // U-ENC-08
  test('every JSON body comes back as JSON.parse(JSON.stringify(body)) gives it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        const { bytes, contentType } = encoded(body)

        expect(decodeBody(bytes, contentType)).toEqual(JSON.parse(JSON.stringify(body)))
      }),
    )
  })

  test('every text that is accepted comes back as it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyUnit }), (body) => {
        const { bytes, contentType } = encoded(body)

        expect(decodeBody(bytes, contentType)).toBe(body)
      }),
      { examples: [['\ufeffwith a byte order mark'], ['']] },
    )
  })

  test('all bytes come back as they were, none included', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (body) => {
        const { bytes, contentType } = encoded(body)

        expect(decodeBody(bytes, contentType)).toEqual(body)
      }),
    )
  })

  test('a codec decodes what it labelled, and leaves what was stored before it', () => {
    expect(decodeBody(Buffer.from('cba'), 'application/x-reversed', reversing)).toBe('abc')
    expect(decodeBody(Buffer.from('{"a":1}'), null, reversing)).toEqual({ a: 1 })
    expect(decodeBody(Buffer.from('abc'), 'text/plain', reversing)).toBe('abc')
  })

  test('__proto__ in JSON becomes a member, not the prototype', () => {
    const body = decodeBody(Buffer.from('{"__proto__":{"admin":true}}'), null) as Record<string, unknown>

    expect(Object.hasOwn(body, '__proto__')).toBe(true)
    expect(body['admin']).toBeUndefined()
  })

  test.each([
    ['bytes that are no UTF-8', Buffer.from([0xff, 0xfe]), 'text/plain'],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), null],
    ['text that is no JSON', Buffer.from('{'), null],
    ['no bytes', Buffer.alloc(0), 'application/json'],
    ['JSON of a suffix type that is none', Buffer.from('nope'), 'application/problem+json'],
  ])('throws on %s (case %#)', (_title, bytes, contentType) => {
    expect(() => decodeBody(bytes, contentType)).toThrow()
  })
})
