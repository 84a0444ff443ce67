import { describe, expect, test } from 'vitest'
import { makeDraft } from './draft.ts'
import { followOnOptions } from './follow-on.ts'
import type { Headers } from './headers.ts'
import type { Draft } from './message.ts'
import type { PublishOptions } from './publish-options.ts'

const rules = {
  queues: null,
  codec: undefined,
  maxBodyBytes: 1_000,
  generation: null,
  source: null,
  newId: () => 'new-id',
}

const inbound = {
  correlationId: 'order-7',
  headers: {
    'content-type': 'text/csv',
    'correlation-id': 'order-7',
    Tenant: 'blue',
    traceparent: '00-1',
    other: 'x',
    Source: 'shop',
  },
}

type Propagate = boolean | readonly string[]

const optionsOf = (propagate: Propagate, given?: PublishOptions): PublishOptions | undefined =>
  followOnOptions(inbound, propagate, given)

/** The headers of a follow-on message with a body of JSON, as they would be stored. */
async function storedHeaders(propagate: Propagate, given?: PublishOptions): Promise<Headers | null> {
  const draft: Draft = await makeDraft(rules, {
    queue: 'mails',
    body: { n: 1 },
    options: optionsOf(propagate, given),
  })
  return draft.headers
}

describe('the correlation id of a follow-on message', () => {
  test('is the one of the message that led to it', async () => {
    await expect(storedHeaders(false)).resolves.toEqual({ 'correlation-id': 'order-7' })
  })

  test('an option that is undefined is not given', async () => {
    await expect(storedHeaders(false, { correlationId: undefined })).resolves.toEqual({
      'correlation-id': 'order-7',
    })
  })

  test('is the one of the options, when they have one', async () => {
    await expect(storedHeaders(true, { correlationId: 'mine' })).resolves.toMatchObject({
      'correlation-id': 'mine',
    })
  })

  test.each(['correlation-id', 'Correlation-Id', 'CORRELATION-ID'])(
    'is the one of the header %s, when it is given',
    async (name) => {
      await expect(storedHeaders(true, { headers: { [name]: 'mine' } })).resolves.toMatchObject({
        'correlation-id': 'mine',
      })
    },
  )

  test('an option and a header that disagree are refused like those of any message', async () => {
    await expect(
      storedHeaders(false, { correlationId: 'one', headers: { 'Correlation-Id': 'other' } }),
    ).rejects.toMatchObject({ code: 'OUTBOX_INVALID_HEADERS' })
  })
})

describe('the headers of a follow-on message', () => {
  const own = { 'correlation-id': 'order-7' }

  test.each<[Propagate, Headers]>([
    [false, {}],
    [true, { Tenant: 'blue', traceparent: '00-1', other: 'x' }],
    [[], {}],
    [['tenant', 'TRACEPARENT'], { Tenant: 'blue', traceparent: '00-1' }],
    [['absent', 'other'], { other: 'x' }],
    [['source', 'tenant'], { Source: 'shop', Tenant: 'blue' }],
  ])(
    'propagateHeaders: %j copies those that it names, whatever their case, as they are written',
    async (propagate, copied) => {
      await expect(storedHeaders(propagate)).resolves.toEqual({ ...copied, ...own })
    },
  )

  test('propagateHeaders: true leaves out who published the message: the follow-on says who publishes it', async () => {
    const publication = { queue: 'mails', body: 1, options: optionsOf(true) }
    const { headers } = await makeDraft({ ...rules, source: 'mailer' }, publication)

    expect([headers?.['source'], headers?.['Source']]).toEqual(['mailer', undefined])
  })

  test.each<Propagate>([true, ['content-type', 'Correlation-Id']])(
    'propagateHeaders: %j copies neither the content type nor a correlation id that was replaced',
    async (propagate) => {
      const headers = await storedHeaders(propagate, { correlationId: 'mine' })

      expect([headers?.['content-type'], headers?.['correlation-id']]).toEqual([undefined, 'mine'])
    },
  )

  test('envelope names are told whatever their case, also on what other programs have written', () => {
    const foreign = { correlationId: 'a', headers: { 'Content-Type': 'text/csv', 'Correlation-ID': 'b' } }

    expect(followOnOptions(foreign, true, undefined)).toEqual({ correlationId: 'a', headers: {} })
  })

  test('a content type of its own is kept, and not mixed up with that of the message', async () => {
    const bytes = {
      queue: 'mails',
      body: Buffer.from('a;b'),
      options: optionsOf(true, { contentType: 'x/y' }),
    }

    expect((await makeDraft(rules, bytes)).headers).toMatchObject({ 'content-type': 'x/y' })
  })

  test.each(['Tenant', 'tenant', 'TENANT'])(
    'the own header %s wins, and is the only one of its name',
    async (name) => {
      await expect(storedHeaders(true, { headers: { [name]: 'green' } })).resolves.toEqual({
        traceparent: '00-1',
        other: 'x',
        [name]: 'green',
        ...own,
      })
    },
  )

  test('an object without a prototype is as good as any', async () => {
    const headers = Object.assign(Object.create(null), { mine: '1' }) as Headers

    await expect(storedHeaders(false, { headers })).resolves.toEqual({ mine: '1', ...own })
  })

  test('neither the message nor what the handler gave is changed', () => {
    const [headers, given] = [
      { ...inbound.headers },
      Object.freeze({ headers: Object.freeze({ mine: '1' }) }),
    ]
    optionsOf(true, given)

    expect(inbound.headers).toEqual(headers)
  })
})

describe('the other options of a follow-on message', () => {
  test('are as they were given', () => {
    const given: PublishOptions = { key: 'k', delayMs: 5, timerId: 't', onConflict: 'replace' }

    expect(optionsOf(false, given)).toEqual({ ...given, correlationId: 'order-7', headers: {} })
  })

  test.each<[string, unknown, string]>([
    ['no object', 5, 'OUTBOX_INVALID_OPTION'],
    ['an array', [], 'OUTBOX_INVALID_OPTION'],
    ['null', null, 'OUTBOX_INVALID_OPTION'],
    ['a misspelt option', { delayMS: 5 }, 'OUTBOX_INVALID_OPTION'],
    ['headers that are no object', { headers: 'a: b' }, 'OUTBOX_INVALID_HEADERS'],
    ['headers that are null', { headers: null }, 'OUTBOX_INVALID_HEADERS'],
    ['headers that are an array', { headers: [['a', 'b']] }, 'OUTBOX_INVALID_HEADERS'],
    ['headers that are a Map', { headers: new Map([['a', 'b']]) }, 'OUTBOX_INVALID_HEADERS'],
    ['Headers of fetch', { headers: new globalThis.Headers({ a: 'b' }) }, 'OUTBOX_INVALID_HEADERS'],
    ['a header that is no string', { headers: { a: 1 } }, 'OUTBOX_INVALID_HEADERS'],
    ['a correlation id that is none', { correlationId: '' }, 'OUTBOX_INVALID_OPTION'],
    ['a correlation id that is null', { correlationId: null }, 'OUTBOX_INVALID_OPTION'],
  ])('%s: refused as publishing would refuse them, not swallowed', async (_, given, code) => {
    const options = given as PublishOptions
    await expect(makeDraft(rules, { queue: 'mails', body: 1, options })).rejects.toMatchObject({ code })
    await expect(storedHeaders(true, options)).rejects.toMatchObject({ code })
  })
})
