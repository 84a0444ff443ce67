import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { writeBody } from './body.ts'
import type { BodyRules } from './body-rules.ts'
import type { Codec } from './codec.ts'
import { typed } from './queues.ts'
import { decodeStored, readBody } from './read-body.ts'
import type { StandardSchema } from './standard-schema.ts'

const rules: BodyRules = { queues: null, codec: undefined, maxBodyBytes: 100 }

const rot: Codec = {
  contentType: 'application/x-rot',
  encode: (body) => Buffer.from(JSON.stringify(body)).map((byte) => byte ^ 1),
  decode: (bytes) => JSON.parse(Buffer.from(bytes.map((byte) => byte ^ 1)).toString()),
}

function withSchema(body: StandardSchema<unknown, unknown>): BodyRules {
  return { ...rules, queues: { orders: { body } } }
}

function schemaOf(validate: (value: unknown) => unknown): StandardSchema<unknown, unknown> {
  return { '~standard': { version: 1, vendor: 'test', validate: validate as never } }
}

const write = async (given: BodyRules, body: unknown, label?: string) =>
  writeBody(given, { queue: 'orders', body, label })

const invalidBody = { code: 'OUTBOX_INVALID_BODY' }

describe('writeBody', () => {
  test('stores the encoded input, not what the schema makes of it', async () => {
    const given = withSchema(z.object({ at: z.coerce.date() }))
    const stored = await write(given, { at: '2026-01-01', extra: 1 })

    expect(Buffer.from(stored.bytes).toString()).toBe('{"at":"2026-01-01","extra":1}')
  })

  test('validates what delivery will see: a date that JSON made a string is refused by a schema of dates', async () => {
    await expect(write(withSchema(z.object({ at: z.date() })), { at: new Date(0) })).rejects.toMatchObject(
      invalidBody,
    )
    await expect(
      write(withSchema(z.object({ at: z.iso.datetime() })), { at: new Date(0) }),
    ).resolves.toBeDefined()
  })

  test('without a schema, and with a type only, a Date is refused', async () => {
    await expect(write(rules, { at: new Date(0) })).rejects.toThrow(/body\.at is a Date/)
    await expect(write(withSchema(typed<{ at: Date }>()), { at: new Date(0) })).rejects.toThrow(
      /body\.at is a Date/,
    )
  })

  test('a problem names the queue, the path and the value', async () => {
    await expect(write(withSchema(z.object({ orderId: z.number() })), { orderId: 'x' })).rejects.toThrow(
      /^as it would be delivered: the body for queue "orders" is not valid: orderId: .*: got `\{"orderId":"x"\}` \(object\)/,
    )
  })

  test('what is wrong with the value itself is not said of what would be delivered', async () => {
    await expect(write(withSchema(z.unknown()), { total: 1n })).rejects.toThrow(
      /^the body for queue "orders" is not valid: body\.total/,
    )
  })

  test('the limit is in bytes and inclusive', async () => {
    await expect(write(rules, 'é'.repeat(50))).resolves.toBeDefined()
    await expect(write(rules, `${'é'.repeat(50)}x`)).rejects.toMatchObject({ code: 'OUTBOX_BODY_TOO_LARGE' })
    await expect(write(rules, Buffer.alloc(101))).rejects.toThrow('at most 100 bytes, got 101 bytes')
  })

  test('the size is told before the schema runs', async () => {
    const given = withSchema(schemaOf(() => expect.fail('ran')))

    await expect(write(given, 'x'.repeat(101))).rejects.toMatchObject({ code: 'OUTBOX_BODY_TOO_LARGE' })
  })

  test('the codec of the queue goes before the codec of the outbox', async () => {
    const given: BodyRules = {
      ...rules,
      queues: { orders: { codec: rot }, emails: {} },
      codec: { ...rot, contentType: 'application/x-outbox' },
    }

    expect((await write(given, 1)).contentType).toBe('application/x-rot')
    expect((await writeBody(given, { queue: 'emails', body: 1, label: undefined })).contentType).toBe(
      'application/x-outbox',
    )
  })

  test('a codec that cannot read what it wrote is found at publish', async () => {
    const decode = (): never => {
      throw new Error('cannot')
    }

    await expect(write({ ...rules, codec: { ...rot, decode } }, 1)).rejects.toMatchObject(invalidBody)
  })

  test.each([
    ['bytes that are no JSON', 'application/json', Buffer.from('{')],
    ['no bytes', 'application/json', new Uint8Array(0)],
    ['bytes that are no UTF-8', 'text/plain', Buffer.from([0xff])],
  ])('%s under the label %s are refused: delivery could not decode them', async (_title, label, body) => {
    await expect(write(rules, body, label)).rejects.toMatchObject(invalidBody)
  })

  test('whatever is accepted, delivery decodes to the same', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.jsonValue(), fc.string(), fc.uint8Array()), async (body) => {
        const given = { ...rules, maxBodyBytes: 1_000_000 }
        const stored = await write(given, body)
        const expected: unknown = body instanceof Uint8Array ? body : JSON.parse(JSON.stringify(body))

        expect(await readBody(given, 'orders', stored)).toEqual(expected)
      }),
    )
  })
})

describe('readBody', () => {
  test('a refusal at delivery speaks of the body alone', async () => {
    const stored = { bytes: Buffer.from('"x"'), contentType: null }

    await expect(readBody(withSchema(z.number()), 'orders', stored)).rejects.toThrow(
      /^the body for queue "orders" is not valid/,
    )
  })

  test('gives the output of the schema, awaited', async () => {
    const given = withSchema(z.object({ at: z.string().transform(async (at) => new Date(at)) }))
    const stored = { bytes: Buffer.from('{"at":"2026-01-01"}'), contentType: null }

    expect(await readBody(given, 'orders', stored)).toEqual({ at: new Date('2026-01-01') })
  })

  test('undefined is an output like any other', async () => {
    const given = withSchema(schemaOf(() => ({ value: undefined })))

    expect(await readBody(given, 'orders', { bytes: Buffer.from('1'), contentType: null })).toBeUndefined()
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('bug')
      },
    ],
    ['rejects', () => Promise.reject(new Error('bug'))],
    [
      'throws what cannot be printed',
      () => {
        throw Object.create(null)
      },
    ],
    ['gives nothing at all', () => undefined],
    ['gives an empty list of issues', () => ({ issues: [] })],
  ])('a schema that %s is an invalid body', async (_title, validate) => {
    const stored = { bytes: Buffer.from('1'), contentType: null }

    await expect(readBody(withSchema(schemaOf(validate)), 'orders', stored)).rejects.toMatchObject(
      invalidBody,
    )
  })

  test.each(['constructor', 'toString', '__proto__'])(
    'a queue called %s finds nothing on the prototype',
    async (queue) => {
      const stored = { bytes: Buffer.from('1'), contentType: null }

      expect(await readBody({ ...rules, queues: { orders: {} } }, queue, stored)).toBe(1)
    },
  )
})

describe('decodeStored', () => {
  test('says how many bytes are not what, and keeps the cause', () => {
    const act = (): unknown => decodeStored(rules, 'orders', { bytes: Buffer.from('{'), contentType: null })

    expect(act).toThrow(
      /the body for queue "orders" is not valid: 1 bytes cannot be decoded as JSON \(SyntaxError/,
    )
    expect(act).toThrow(
      expect.objectContaining({ code: 'OUTBOX_INVALID_BODY', cause: expect.any(SyntaxError) }),
    )
  })

  test('a codec that throws what cannot be printed is an invalid body', () => {
    const decode = (): never => {
      throw Object.create(null)
    }
    const given = { ...rules, codec: { ...rot, decode } }
    const stored = { bytes: Buffer.from('1'), contentType: rot.contentType }

    expect(() => decodeStored(given, 'orders', stored)).toThrow(expect.objectContaining(invalidBody))
  })
})
