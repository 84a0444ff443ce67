import { describe, expect, test } from 'vitest'
import type { Headers } from './headers.ts'
import type { Draft, Receipt } from './message.ts'
import { compose, type Middleware, publishThrough, type Skin, skinsOf } from './middleware.ts'

type Skins = readonly NonNullable<Middleware['publish']>[]

const draft: Draft = {
  id: 'a',
  queue: 'orders',
  key: null,
  timerId: null,
  conflict: 'none',
  body: new Uint8Array(3),
  headers: { tenant: '1' },
  schedule: { kind: 'now' },
  generation: null,
}
const receipt: Receipt = { id: 'a', seq: '1' }
const publishable = { queue: 'orders', bodies: [{ orderId: 1 }], drafts: [draft] }
const anything = (value: unknown): never => value as never
const neverRun = async (): Promise<never> => expect.fail('it was run')

/** Publishes one message through the middleware; what was written is the evidence. */
function through(...skins: Skins) {
  const middleware = skins.map((publish) => ({ publish }))
  const written: (readonly Draft[])[] = []
  const published = publishThrough({ middleware, maxBodyBytes: 1_000 }, publishable, async (drafts) => {
    written.push(drafts)
    return [receipt]
  })
  return { written, published }
}

const adding =
  (headers: unknown): Skins[number] =>
  (_, next) =>
    next(headers as Headers)

describe('compose', () => {
  test('the first skin is the outermost: it begins first and ends last', async () => {
    const trail: string[] = []
    const skin =
      (name: string): Skin<string, never, string> =>
      async (call, next) => {
        trail.push(`${name} in ${call}`)
        const answer = await next()
        trail.push(`${name} out ${answer}`)
        return `${answer}${name}`
      }
    const answer = await compose([skin('a'), skin('b')], 'x', async () => {
      trail.push('core')
      return '-'
    })

    expect(trail).toEqual(['a in x', 'b in x', 'core', 'b out -', 'a out -b'])
    expect(answer).toBe('-ba')
  })

  test('without skins it is what is inside', async () => {
    expect(await compose([], 'x', async (extras) => extras)).toEqual([])
  })

  test('a skin that does not call next answers alone', async () => {
    expect(await compose([() => 'mine', neverRun], 'x', neverRun)).toBe('mine')
  })

  test('what is thrown inside comes to every skin, and one may answer for it', async () => {
    const seen: unknown[] = []
    const failed = new Error('failed')
    const mends: Skin<string, never, string> = (_, next) => next().catch(() => 'mended')
    const sees: Skin<string, never, string> = (_, next) =>
      next().catch((error) => {
        seen.push(error)
        throw error
      })

    expect(await compose([mends, sees], 'x', () => Promise.reject(failed))).toBe('mended')
    expect(seen).toEqual([failed])
  })

  test('next runs once: a second call throws, also beside the first, and also when the first has failed', async () => {
    let runs = 0
    const inner = async (): Promise<string> => {
      runs++
      throw new Error('failed')
    }
    const again: readonly Skin<string, never, string>[] = [
      (_, next) => Promise.all([next(), next()]),
      (_, next) => next().catch(() => next()),
    ]

    for (const skin of again) {
      await expect(compose([skin], 'x', inner)).rejects.toThrow(/call `next` at most once/)
    }
    expect(runs).toBe(2)
  })

  test('next cannot be kept for later', async () => {
    let kept: (() => unknown) | undefined
    const keeps: Skin<string, never, string> = (_, next) => {
      kept = next
      return 'mine'
    }
    await compose([keeps], 'x', neverRun)

    expect(() => kept?.()).toThrow(expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' }))
  })

  test('what a skin began and did not wait for has ended when the answer comes', async () => {
    let finish = (): void => {}
    let isOver = false
    const inner = async (): Promise<string> => {
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      isOver = true
      return 'inner'
    }
    const forgets: Skin<string, never, string> = (_, next) => {
      void next()
      return 'mine'
    }
    const composed = compose<string, never, string>([forgets], 'x', inner)
    finish()

    expect([await composed, isOver]).toEqual(['mine', true])
  })
})

describe('skinsOf', () => {
  test('finds the layers of one kind, which keep the object they belong to', () => {
    class Counting implements Middleware {
      readonly #name = 'counting'
      async consume(): Promise<string> {
        return this.#name
      }
    }
    const [consume, ...others] = skinsOf([{}, new Counting(), { publish: async () => [] }], 'consume')

    expect(others).toEqual([])
    return expect(consume?.(anything(null), expect.fail)).resolves.toBe('counting')
  })
})

describe('publishThrough', () => {
  test('without middleware the drafts themselves are written', async () => {
    const { written, published } = through()

    expect(await published).toEqual([receipt])
    expect(written[0]).toBe(publishable.drafts)
  })

  test('a middleware sees the queue and the bodies, and can change neither', async () => {
    const seen: unknown[] = []
    const { published } = through((call, next) => {
      seen.push(call, Object.isFrozen(call), Object.isFrozen(call.bodies))
      return next()
    })
    await published

    expect(seen).toEqual([{ queue: 'orders', bodies: [{ orderId: 1 }] }, true, true])
  })

  test('headers that are added come to every message; its own win, whatever their case', async () => {
    const { written, published } = through(adding({ trace: 't', Tenant: '2' }))
    await published

    expect(written[0]?.[0]).toEqual({ ...draft, headers: { tenant: '1', trace: 't' } })
  })

  test('of two that add the same header the outer one wins', async () => {
    const { written, published } = through(
      adding({ trace: 'outer', a: '1' }),
      adding({ Trace: 'inner', b: '2' }),
    )
    await published

    expect(written[0]?.[0]?.headers).toEqual({ tenant: '1', trace: 'outer', a: '1', b: '2' })
  })

  test('what one of them adds is kept whole, names that differ only by case included', async () => {
    const { written, published } = through(adding({ a: '1', A: '2' }))
    await published

    expect(written[0]?.[0]?.headers).toEqual({ tenant: '1', a: '1', A: '2' })
  })

  test('next without headers, or with none, changes nothing', async () => {
    for (const headers of [undefined, {}]) {
      const { written, published } = through(adding(headers))
      await published

      expect(written[0]?.[0]).toBe(draft)
    }
  })

  test.each([
    [{ 'Content-Type': 'text/plain' }, 'content-type'],
    [{ 'correlation-id': 'c' }, 'correlation-id'],
    [{ trace: 7 }, 'trace'],
    [{ trace: 'a\u0000' }, 'NUL'],
    [{ '': 'a' }, 'empty'],
    [null, 'null'],
    ['trace=1', 'trace=1'],
    [{ trace: 'x'.repeat(1_000) }, 'bytes'],
  ])('adding %j is refused before anything is written', async (headers, shows) => {
    const { written, published } = through(adding(headers))

    await expect(published).rejects.toMatchObject({
      code: 'OUTBOX_INVALID_HEADERS',
      message: expect.stringContaining(shows),
    })
    expect(written).toEqual([])
  })

  test.each([[[null]], [[receipt]]])('it may answer %j without next: nothing is written', async (answer) => {
    const { written, published } = through(async () => answer)

    expect(await published).toEqual(answer)
    expect(written).toEqual([])
  })

  test.each([
    undefined,
    null,
    'published',
    {},
    [],
    [receipt, receipt],
    [undefined],
    new Array(1),
    [{ id: 'a' }],
    [{ id: 1, seq: '1' }],
    ['a'],
  ])('another answer is refused (case %#)', async (answer) => {
    const { published } = through(async () => anything(answer))

    await expect(published).rejects.toMatchObject({
      code: 'OUTBOX_INVALID_OPTION',
      message: expect.stringContaining('expected `middleware` to answer with an array of 1'),
    })
  })

  test('its exception is the exception of the publish', async () => {
    const failed = new Error('failed')
    const throwsAtOnce: Skins[number] = () => {
      throw failed
    }

    await expect(through(throwsAtOnce).published).rejects.toBe(failed)
    await expect(through(() => Promise.reject(failed)).published).rejects.toBe(failed)
  })
})
