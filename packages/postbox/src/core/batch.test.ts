import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { type Batch, batchOf } from './batch.ts'
import type { DraftRules } from './draft.ts'
import { type BatchInput, makeDrafts } from './drafts.ts'

let made = 0
const rules: DraftRules = {
  queues: { orders: {} },
  codec: undefined,
  maxBodyBytes: 1_048_576,
  generation: null,
  source: null,
  newId: () => `0190163d-8694-739b-9aea-${String(made++).padStart(12, '0')}`,
}
const id = '0190163d-8694-739b-9aea-966c26f8ad91'

const batch = (bodies: unknown, options?: unknown, queue = 'orders') =>
  makeBatch(rules, { queue, bodies: bodies as unknown[], options: options as never })

/** As publishMany makes one. */
async function makeBatch(given: DraftRules, input: BatchInput): Promise<Batch> {
  return batchOf(input.queue, await makeDrafts(given, input))
}

describe('makeDrafts and batchOf', () => {
  test('drafts stand in the order of the bodies, each with an id of its own', async () => {
    const { drafts, conflict, queue } = await batch([3, 1, null, 2])

    expect(drafts.map(({ body }) => Buffer.from(body).toString())).toEqual(['3', '1', '', '2'])
    expect(new Set(drafts.map((draft) => draft.id)).size).toBe(4)
    expect({ conflict, queue }).toEqual({ conflict: 'none', queue: 'orders' })
  })

  test('drafts are not made before their schema has answered, in a program with a Promise of its own, too', async () => {
    const checking = { ...rules, queues: { orders: { body: z.number() } } }
    vi.stubGlobal('Promise', class extends Promise<unknown> {})
    const [made, refused] = [
      [1, 2],
      [1, '2'],
    ].map((bodies) => makeDrafts(checking, { queue: 'orders', bodies, options: undefined }))
    vi.unstubAllGlobals()

    await expect(refused).rejects.toThrow(/bodies\[1\]/)
    expect((await made!).map(({ body }) => body)).toEqual([Buffer.from('1'), Buffer.from('2')])
  })

  // U-PUB-14
  test('an empty batch is empty, but its queue is checked', async () => {
    expect((await batch([])).drafts).toEqual([])
    await expect(batch([], undefined, 'ordres')).rejects.toMatchObject({ code: 'OUTBOX_UNKNOWN_QUEUE' })
    await expect(batch([], undefined, '')).rejects.toMatchObject({ code: 'OUTBOX_INVALID_QUEUE' })
  })

  test.each([undefined, null, 'abc', { length: 1, 0: 'a' }, new Set([1]), new Uint8Array(2)])(
    'bodies that are no array are refused (case %#)',
    async (bodies) => {
      await expect(batch(bodies)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_BODY' })
    },
  )

  test('an error names the body it is about', async () => {
    await expect(batch([1, 2n])).rejects.toThrow(/^bodies\[1\]: the body for queue "orders" is not valid/)
    // biome-ignore lint/suspicious/noSparseArray: the hole is what is tested
    await expect(batch([1, , 3])).rejects.toThrow(/^bodies\[1\]: .*body is undefined/)
  })

  test('options are for all, or made for each', async () => {
    const all = await batch(['a', 'b'], { key: 'k' })
    const each = await batch(['a', 'b'], (body: string, index: number) => ({ key: `${body}${index}` }))

    expect(all.drafts.map((draft) => draft.key)).toEqual(['k', 'k'])
    expect(each.drafts.map((draft) => draft.key)).toEqual(['a0', 'b1'])
  })

  test('what the function of options throws reaches the caller as it is', async () => {
    const mine = new Error('mine')
    const throws = (): never => {
      throw mine
    }

    await expect(batch([1], throws)).rejects.toBe(mine)
  })

  test.each([[{ id }], [(_body: unknown, index: number) => ({ id: index === 0 ? id : id.toUpperCase() })]])(
    'one id twice is refused, whatever its case (case %#)',
    async (options) => {
      await expect(batch([1, 2], options)).rejects.toThrow(/^bodies\[1\]: expected each `id` once in a batch/)
    },
  )

  test('a batch agrees on what happens when a timer waits', async () => {
    const each = (first: object, second: object) =>
      batch([1, 2], (_body: unknown, index: number) => (index === 0 ? first : second))

    expect((await each({ timerId: 'a' }, {})).conflict).toBe('keep')
    expect((await each({}, { timerId: 'a', onConflict: 'replace' })).conflict).toBe('replace')
    await expect(each({ timerId: 'a' }, { timerId: 'b', onConflict: 'replace' })).rejects.toMatchObject({
      code: 'OUTBOX_INVALID_OPTION',
    })
  })

  test('one timer twice is kept once, and cannot be replaced twice by one statement', async () => {
    expect((await batch([1, 2], { timerId: 'a' })).drafts).toHaveLength(2)
    await expect(batch([1, 2], { timerId: 'a', onConflict: 'replace' })).rejects.toThrow(
      /^bodies\[1\]: expected each `timerId` once in a batch, got `"a"` \(string\) again/,
    )
  })

  // One jsonb value holds at most 268,435,455 bytes: Postgres answers more with 54000, inside the caller's transaction.
  test('a batch that one jsonb parameter cannot hold is refused before any SQL', async () => {
    const mebibyte = new Uint8Array(1_048_576)
    const attempt = batch(Array.from({ length: 200 }, () => mebibyte))
    const answer = await attempt.then(
      ({ drafts }) => `accepted ${drafts.length} drafts`,
      (error: { code: string }) => error.code,
    )

    expect(answer).toBe('OUTBOX_BODY_TOO_LARGE')
  })

  test('what the caller changes after the call changes nothing', async () => {
    const options = { key: 'a' }
    const bodies: unknown[] = [1, { n: 2 }, 3]
    const making = makeBatch(rules, { queue: 'orders', bodies, options })
    options.key = 'b'
    ;(bodies[1] as { n: number }).n = 99
    bodies[2] = 99
    bodies.push(4)

    const { drafts } = await making

    expect(drafts.map(({ key, body }) => `${key} ${Buffer.from(body)}`)).toEqual(['a 1', 'a {"n":2}', 'a 3'])
  })
})
