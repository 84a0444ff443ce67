import { describe, expect, test } from 'vitest'
import { unhandledWhile } from '../../../../tests/support/delivery-bench.ts'
import { compose, type Skin } from './middleware.ts'

type Forgetting = Skin<string, never, string>

const inside = new Error('inside')
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const failing = async (): Promise<never> => {
  await turn()
  throw inside
}

/** What the whole comes to when the inside fails, and what the process hears of. */
async function endOf(...skins: readonly Forgetting[]): Promise<unknown> {
  const ends: unknown[] = []
  const unhandled = await unhandledWhile(async () => {
    const [end] = await Promise.allSettled([compose(skins, 'x', failing)])
    ends.push(end.status === 'fulfilled' ? end.value : end.reason)
  })
  return [...ends, ...unhandled]
}

describe('an inside that fails', () => {
  const passing: Forgetting = (_, next) => next()

  // A forgotten `await` must not acknowledge what failed.
  test.each<[string, Forgetting]>([
    ['calls next and no more', (_, next) => void next()],
    [
      'waits for something else',
      async (_, next) => {
        void next()
        await turn()
        await turn()
        return 'mine'
      },
    ],
    ['only measures it', (_, next) => void next().then(() => 'measured')],
    ['only measures it, in steps', (_, next) => void next().then(String).then(String)],
    ['only notes that it is over', (_, next) => void next().finally(() => {})],
    [
      'notes that it is over, and measures it',
      (_, next) =>
        void next()
          .finally(() => {})
          .then(String),
    ],
  ])('is the failure of the whole where a skin %s', async (_, skin) => {
    expect(await endOf(skin)).toEqual([inside])
    expect(await endOf(passing, skin)).toEqual([inside])
    expect(await endOf(skin, passing)).toEqual([inside])
  })

  test.each<[string, Forgetting]>([
    ['awaits it', async (_, next) => await next()],
    ['returns it', (_, next) => next()],
    ['returns what it makes of it', (_, next) => next().then(String)],
    ['awaits what it makes of it', async (_, next) => await next().finally(() => {})],
    [
      'awaits it late',
      async (_, next) => {
        const begun = next()
        await turn()
        await turn()
        return await begun
      },
    ],
    [
      'waits for it among others',
      async (_, next) => {
        await Promise.all([turn(), next()])
      },
    ],
  ])('is the failure of the whole, once, where a skin %s', async (_, skin) => {
    expect(await endOf(skin)).toEqual([inside])
    expect(await endOf(skin, skin)).toEqual([inside])
  })

  test.each<[string, Forgetting]>([
    ['catches it', (_, next) => next().catch(() => 'mine')],
    ['takes both ends', (_, next) => next().then(String, () => 'mine')],
    [
      'catches what it makes of it',
      (_, next) =>
        next()
          .then(String)
          .catch(() => 'mine'),
    ],
    [
      'catches it when it is over',
      (_, next) =>
        next()
          .finally(() => {})
          .catch(() => 'mine'),
    ],
    [
      'tries it',
      async (_, next) => {
        try {
          await next()
        } catch {}
        return 'mine'
      },
    ],
    [
      'waits for either end',
      async (_, next) => {
        await Promise.allSettled([next()])
        return 'mine'
      },
    ],
    [
      'catches it, and does not wait for that',
      (_, next) => {
        next().catch(() => {})
        return 'mine'
      },
    ],
  ])('is the deliberate answer of a skin that %s', async (_, skin) => {
    expect(await endOf(skin)).toEqual(['mine'])
    expect(await endOf(passing, skin, passing)).toEqual(['mine'])
  })

  test('gives way to what the skin around it throws itself', async () => {
    const own = new Error('own')
    const throwing: readonly Forgetting[] = [
      (_, next) => {
        void next()
        throw own
      },
      async (_, next) => {
        void next()
        await turn()
        await turn()
        throw own
      },
    ]

    for (const skin of throwing) expect(await endOf(skin)).toEqual([own])
  })

  test('that nobody listens to reaches the skins outside of it, which may answer for it', async () => {
    const forgets: Forgetting = (_, next) => void next()
    const mends: Forgetting = (_, next) => next().catch((error) => ['mended', error])

    expect(await endOf(mends, forgets)).toEqual([['mended', inside]])
  })
})
