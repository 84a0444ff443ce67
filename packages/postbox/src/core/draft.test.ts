import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { type DraftRules, makeDraft } from './draft.ts'
import type { PublishOptions } from './publish-options.ts'

const newId = '0190163d-8694-739b-9aea-966c26f8ad91'
const rules: DraftRules = {
  queues: null,
  codec: undefined,
  maxBodyBytes: 1_000,
  generation: null,
  source: null,
  newId: () => newId,
}

const draft = (body: unknown, options?: unknown, given: DraftRules = rules) =>
  makeDraft(given, { queue: 'orders', body, options: options as PublishOptions })

describe('makeDraft', () => {
  test('without options everything but queue, id and body is empty', async () => {
    expect(await draft({ a: 1 })).toEqual({
      id: newId,
      queue: 'orders',
      key: null,
      isOrdered: false,
      timerId: null,
      conflict: 'none',
      body: Buffer.from('{"a":1}'),
      headers: null,
      schedule: { kind: 'now' },
      generation: null,
    })
  })

  test('is in order when it has a key and its queue is', async () => {
    const ordered = { ...rules, queues: { orders: { order: 'key' } } } as const
    const all = [
      await draft(1, { key: 'k' }, ordered),
      await draft(1, {}, ordered),
      await draft(1, { key: 'k' }, { ...rules, queues: { orders: {} } }),
      await draft(1, { key: 'k' }),
    ]

    expect(all.map(({ isOrdered }) => isOrdered)).toEqual([true, false, false, false])
  })

  test('without a key is in order when it may replace a timer that has one: it must not inherit that', async () => {
    const ordered: DraftRules = { ...rules, queues: { orders: { order: 'key' } } }
    const timer = { timerId: 't', onConflict: 'replace' } as const

    expect(await draft(1, timer, ordered)).toMatchObject({ key: null, isOrdered: true })
    expect(await draft(1, timer)).toMatchObject({ isOrdered: false })
  })

  test('every option finds its place', async () => {
    const options = { key: 'k', timerId: 't', onConflict: 'replace', delayMs: 5, id: newId.toUpperCase() }

    expect(await draft('x', options, { ...rules, generation: 3 })).toMatchObject({
      id: newId,
      key: 'k',
      timerId: 't',
      conflict: 'replace',
      schedule: { kind: 'after', delayMs: 5 },
      generation: 3,
    })
  })

  test('a timer keeps what waits unless told otherwise', async () => {
    expect(await draft('x', { timerId: 't' })).toMatchObject({ conflict: 'keep' })
  })

  test('options that the caller changes after the call do not change the message', async () => {
    const at = new Date(1_000)
    const headers: Record<string, string> = { tenant: 'a' }
    const options = { key: 'a', timerId: 'a', at, headers, correlationId: 'a', onConflict: 'keep', id: newId }
    // A schema is awaited, so that there is a time after the call and before the message.
    const making = draft(1, options, { ...rules, queues: { orders: { body: z.number() } } })
    Object.assign(options, {
      key: 'b',
      timerId: undefined,
      correlationId: 'b',
      onConflict: 'replace',
      id: 'b',
    })
    Object.assign(headers, { tenant: 'b' })
    at.setTime(2_000)

    expect(await making).toMatchObject({
      id: newId,
      key: 'a',
      timerId: 'a',
      conflict: 'keep',
      schedule: { kind: 'at', epochMs: 1_000 },
      headers: { tenant: 'a', 'correlation-id': 'a' },
    })
  })

  test('a body that the caller changes after the call does not change the message', async () => {
    const body = { orderId: 1 }
    const making = draft(body, undefined, { ...rules, queues: { orders: { body: z.unknown() } } })
    body.orderId = 2

    expect(Buffer.from((await making).body).toString()).toBe('{"orderId":1}')
  })

  test('is not made before its schema has answered, in a program with a Promise of its own, too', async () => {
    const checking = { ...rules, queues: { orders: { body: z.number() } } }
    vi.stubGlobal('Promise', class extends Promise<unknown> {})
    const [made, refused] = [draft(1, undefined, checking), draft('1', undefined, checking)]
    vi.unstubAllGlobals()

    await expect(refused).rejects.toMatchObject({ code: 'OUTBOX_INVALID_BODY' })
    expect((await made).body).toEqual(Buffer.from('1'))
  })

  // U-ENC-04
  test('headers of the caller stand beside those of the envelope', async () => {
    const { headers } = await draft('x', { headers: { tenant: 'a' }, correlationId: 'c' })

    expect(headers).toEqual({
      tenant: 'a',
      'content-type': 'text/plain; charset=utf-8',
      'correlation-id': 'c',
    })
  })

  test('the source of the outbox is a header of messages that have none, whatever its case', async () => {
    const given = { ...rules, source: 'shop' }

    expect((await draft(1, {}, given)).headers).toEqual({ source: 'shop' })
    expect((await draft(1, { headers: { source: 'till' } }, given)).headers).toEqual({ source: 'till' })
    expect((await draft(1, { headers: { Source: 'till' } }, given)).headers).toEqual({ Source: 'till' })
  })

  // U-ENC-02
  test('a correlation id is kept, from the option, from the header, or from both', async () => {
    const given = [
      { correlationId: 'c' },
      { headers: { 'Correlation-ID': 'c' } },
      { correlationId: 'c', headers: { 'correlation-id': 'c' } },
    ]

    for (const options of given) expect((await draft(1, options)).headers).toEqual({ 'correlation-id': 'c' })
  })

  // U-ENC-05
  test('a content type is taken from the option, from the header, or from both', async () => {
    const given = [
      { contentType: 'image/png' },
      { headers: { 'Content-Type': 'image/png' } },
      { contentType: 'image/png', headers: { 'content-type': 'image/png' } },
    ]

    for (const options of given) {
      expect((await draft(Buffer.from('x'), options)).headers).toEqual({ 'content-type': 'image/png' })
    }
  })

  test('the JSON content type is not stored, even when it was asked for', async () => {
    expect((await draft(1, { contentType: 'application/json' })).headers).toBeNull()
    expect((await draft(1, { headers: { 'content-type': 'application/json' } })).headers).toBeNull()
  })

  test.each([
    [{ correlationId: 'a', headers: { 'correlation-id': 'b' } }, 'OUTBOX_INVALID_HEADERS'],
    [{ contentType: 'text/a', headers: { 'content-type': 'text/b' } }, 'OUTBOX_INVALID_HEADERS'],
    [{ headers: { 'content-type': 'application/json' } }, 'OUTBOX_INVALID_BODY'],
    [{ headers: { note: 'x'.repeat(1_000) } }, 'OUTBOX_INVALID_HEADERS'],
    [{ correlationId: '' }, 'OUTBOX_INVALID_OPTION'],
  ])('a contradiction is refused (case %#)', async (options, code) => {
    await expect(draft('text', options)).rejects.toMatchObject({ code })
  })

  test.each([
    ['empty', ''],
    ['too long', 'x'.repeat(1_025)],
  ])('a correlation id that is %s is refused in the header as it is in the option', async (_title, id) => {
    const given = { ...rules, maxBodyBytes: 10_000 }

    await expect(draft(1, { correlationId: id }, given)).rejects.toMatchObject({
      code: 'OUTBOX_INVALID_OPTION',
    })
    await expect(draft(1, { headers: { 'correlation-id': id } }, given)).rejects.toThrow(/correlation/)
  })

  test('problems are told in one order: queue, options, time, headers, body, size, schema', async () => {
    const queues = { orders: { body: z.number() } }
    const given: DraftRules = { ...rules, queues, maxBodyBytes: 20 }
    const wrong = { colour: 1, delayMs: -1, headers: 7 }
    const codes = [
      makeDraft(given, { queue: 'nope', body: 1n, options: wrong as never }),
      draft(1n, wrong, given),
      draft(1n, { delayMs: -1, headers: 7 }, given),
      draft(1n, { headers: 7 }, given),
      draft(1n, {}, given),
      draft('x'.repeat(50), {}, given),
      draft('x', {}, given),
    ].map((attempt) =>
      attempt.then(
        () => 'accepted',
        (error: { code: string }) => error.code,
      ),
    )

    expect(await Promise.all(codes)).toEqual([
      'OUTBOX_UNKNOWN_QUEUE',
      'OUTBOX_INVALID_OPTION',
      'OUTBOX_INVALID_TIME',
      'OUTBOX_INVALID_HEADERS',
      'OUTBOX_INVALID_BODY',
      'OUTBOX_BODY_TOO_LARGE',
      'OUTBOX_INVALID_BODY',
    ])
  })
})
