import { describe, expect, test } from 'vitest'
import { purgeShape, resolvePurge } from './purge-options.ts'

describe('resolvePurge', () => {
  test('gives back how old, and the signal', () => {
    const { signal } = new AbortController()

    expect(resolvePurge({ olderThanMs: 0 })).toEqual({ olderThanMs: 0, signal: undefined })
    expect(resolvePurge({ olderThanMs: 86_400_000, signal })).toEqual({ olderThanMs: 86_400_000, signal })
  })

  test('takes the options that a purge of something else has, too', () => {
    const shape = { ...purgeShape, consumer: () => null }

    expect(resolvePurge({ olderThanMs: 1, consumer: 'mails' } as never, shape)).toMatchObject({
      olderThanMs: 1,
    })
  })

  test.each([
    [undefined, 'give { olderThanMs }'],
    [86_400_000, 'give { olderThanMs }'],
    [{}, 'expected `olderThanMs` to be a whole number'],
    [{ olderThanMs: undefined }, 'expected `olderThanMs` to be a whole number'],
    [{ olderThanMs: -1 }, 'got `-1`'],
    [{ olderThanMs: 1.5 }, 'got `1.5`'],
    [{ olderThanMs: '1' }, '(string)'],
    [{ olderThanMs: 36_526 * 86_400_000 }, 'to 3155760000000'],
    [{ olderThanMs: 0, signal: true }, 'to be an AbortSignal'],
    [{ olderThan: 5 }, 'did you mean `olderThanMs`'],
  ])('refuses %j before anything is deleted', (options, says) => {
    expect(() => resolvePurge(options as never)).toThrow(
      expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION', message: expect.stringContaining(says) }),
    )
  })
})
