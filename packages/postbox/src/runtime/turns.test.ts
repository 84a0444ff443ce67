import { describe, expect, test } from 'vitest'
import { createTurns } from './turns.ts'

/** Resolves when everything that could run without waiting has run, unhandled rejections included. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Work that notes when it begins and ends, and lasts until it is told how to end. */
function pieces() {
  const order: string[] = []
  const piece = (name: string) => {
    let end = (): void => {}
    let fail = (_error: Error): void => {}
    const ending = new Promise<void>((resolve, reject) => {
      end = resolve
      fail = reject
    })
    const work = async (): Promise<string> => {
      order.push(`${name} begins`)
      await ending.finally(() => order.push(`${name} ends`))
      return name
    }
    return { work, end: () => end(), fail: (error: Error) => fail(error) }
  }
  return { order, piece }
}

describe('createTurns', () => {
  test('one piece of work at a time, in the order of asking', async () => {
    const { order, piece } = pieces()
    const [first, second, third] = [piece('first'), piece('second'), piece('third')]
    const turns = createTurns()
    const taken = [first, second, third].map(({ work }) => turns.take(work))
    third.end()
    second.end()
    await settled()
    const before = [...order]
    first.end()

    expect(before).toEqual(['first begins'])
    expect(await Promise.all(taken)).toEqual(['first', 'second', 'third'])
    expect(order).toEqual([
      'first begins',
      'first ends',
      'second begins',
      'second ends',
      'third begins',
      'third ends',
    ])
  })

  test('what fails tells its own caller, and the next one has its turn', async () => {
    const { piece } = pieces()
    const [first, second] = [piece('first'), piece('second')]
    const turns = createTurns()
    const taken = Promise.allSettled([turns.take(first.work), turns.take(second.work)])
    const reason = new Error('first failed')
    first.fail(reason)
    second.end()

    expect(await taken).toEqual([
      { status: 'rejected', reason },
      { status: 'fulfilled', value: 'second' },
    ])
  })

  test('work that throws before it awaits anything is a failure like any other', async () => {
    const turns = createTurns()
    const thrown = turns.take(() => {
      throw new Error('at once')
    })
    const next = turns.take(async () => 'next')

    await expect(thrown).rejects.toThrow('at once')
    await expect(next).resolves.toBe('next')
  })

  test('a failure that its caller has handled is left unhandled by nobody', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): unknown => unhandled.push(reason)
    process.on('unhandledRejection', note)
    const turns = createTurns()
    await expect(turns.take(() => Promise.reject(new Error('handled')))).rejects.toThrow('handled')
    await turns.ended()
    await settled()
    process.off('unhandledRejection', note)

    expect(unhandled).toEqual([])
  })
})

describe('ended', () => {
  test('resolves at once when nothing was asked for', async () => {
    await expect(createTurns().ended()).resolves.toBeUndefined()
  })

  test('waits for everything that was asked for, well or not, and for nothing that is asked for later', async () => {
    const { order, piece } = pieces()
    const [first, second, later] = [piece('first'), piece('second'), piece('later')]
    const turns = createTurns()
    const taken = Promise.allSettled([turns.take(first.work), turns.take(second.work)])
    const ended = turns.ended().then(() => order.push('ended'))
    const afterwards = turns.take(later.work)
    first.end()
    await settled()
    const before = [...order]
    second.fail(new Error('not well'))
    await ended
    const after = [...order]
    later.end()
    await Promise.all([taken, afterwards])

    expect(before).toEqual(['first begins', 'first ends', 'second begins'])
    expect(after).toContain('second ends')
    expect(after).toContain('ended')
    expect(after).not.toContain('later ends')
  })
})
