import { expect, test } from 'vitest'
import type { Draft } from '../../packages/postbox/src/core/message.ts'
import {
  deleteWithFollowOns,
  type SettledWithFollowOns,
} from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { draftOf, otherToken } from '../support/settle-bench.ts'
import { inMinutes, type StoreBench, seqsOf } from './store-bench.ts'

export function describeFollowOns(bench: StoreBench): void {
  const settle = (settled: readonly SettledWithFollowOns[]) =>
    bench.run(deleteWithFollowOns(bench.names, { settled, wake: 'always' }))
  const keyed = (...keys: readonly string[]): readonly Draft[] => keys.map((key) => draftOf({ key }))
  const keep = (key: string, given: Partial<Draft> = {}): Draft => draftOf({ key, timerId: 't', ...given })
  const replace = (key: string, given: Partial<Draft> = {}): Draft =>
    keep(key, { conflict: 'replace', ...given })
  const keysOf = async (): Promise<readonly (string | null)[]> => (await bench.rows()).map(({ key }) => key)

  test('follow-ons go to any queues, each with everything that it was given', async () => {
    const [fence] = await bench.hold()
    const own = { queue: 'mails', key: 'k', headers: { a: 'b' }, generation: 7, body: Buffer.from([0, 255]) }
    const drafts = [draftOf({ ...own, ...inMinutes(5) }), draftOf({ queue: 'bills', timerId: 't' })]

    expect(await settle([{ ...fence!, followOns: drafts }])).toMatchObject([{ seq: '1' }])

    const fresh = { attempts: 0, deliveries: 0, leaseToken: null, createdAt: 0 }
    expect(await bench.rows()).toMatchObject([
      { ...own, seq: '2', id: drafts[0]!.id, body: 'AP8=', timerId: null, dueAt: 5, ...fresh },
      {
        seq: '3',
        id: drafts[1]!.id,
        queue: 'bills',
        key: null,
        headers: null,
        timerId: 't',
        dueAt: null,
        ...fresh,
      },
    ])
  })

  test('follow-ons get their seqs in the order of the drafts, of all messages, timers among them', async () => {
    const [first, second] = await bench.hold(2)
    const mixed = [
      draftOf({ key: 'a' }),
      keep('b'),
      draftOf({ key: 'c', queue: 'mails' }),
      replace('d', { timerId: 'd' }),
    ]

    await settle([
      { ...first!, followOns: mixed },
      { ...second!, followOns: keyed('e', 'f') },
    ])

    expect(await keysOf()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    expect((await bench.rows()).map(({ seq }) => seq)).toEqual(['3', '4', '5', '6', '7', '8'])
  })

  test('only a message that was deleted leaves follow-ons, and one without any is deleted all the same', async () => {
    const [first, second, third] = await bench.hold(3)

    const written = await settle([
      { ...first!, followOns: keyed('first') },
      { ...second!, token: otherToken, followOns: keyed('lost') },
      { ...third!, followOns: [] },
    ])

    expect(seqsOf(written)).toEqual(['1', '3'])
    expect(await bench.rows()).toMatchObject([
      { seq: '2', leaseToken: second!.token },
      { seq: '4', key: 'first' },
    ])
  })

  test('a follow-on that is a timer leaves alone one that waits, or replaces it', async () => {
    const [first, second] = await bench.hold(2)
    await bench.publish(keep('waiting'))
    await bench.publish(keep('waiting', { timerId: 'u', ...inMinutes(5) }))

    await settle([{ ...first!, followOns: [keep('kept'), replace('replaced', { timerId: 'u' })] }])
    await settle([{ ...second!, followOns: [keep('again'), keep('other queue', { queue: 'mails' })] }])

    expect(await bench.rows()).toMatchObject([
      { seq: '3', key: 'waiting', dueAt: null },
      { seq: '4', key: 'replaced', dueAt: 0 },
      { key: 'other queue' },
    ])
  })

  test('a timer arms itself anew: its own name is free while it runs', async () => {
    const [fence] = await bench.hold([{ timerId: 't' }])

    await settle([{ ...fence!, followOns: [keep('next', inMinutes(5))] }])

    expect(await bench.rows()).toMatchObject([{ key: 'next', timerId: 't', dueAt: 5 }])
  })

  test.each([
    ['the first, when none replaces', () => [keep('a'), keep('b'), keep('c')], 'a'],
    ['the last that replaces', () => [replace('a'), replace('b'), replace('c')], 'c'],
    [
      'the last that replaces, before and behind those that do not',
      () => [keep('a'), replace('b'), replace('c'), keep('d')],
      'c',
    ],
  ])('of several timers of one name one is inserted: %s', async (_, drafts, expected) => {
    const [first, second] = await bench.hold(2)
    const [own, ...others] = drafts()

    await settle([
      { ...first!, followOns: [own!] },
      { ...second!, followOns: [...others, keep('elsewhere', { queue: 'mails' })] },
    ])

    expect(await bench.rows()).toMatchObject([
      { seq: '3', key: expected, queue: 'orders' },
      { seq: '4', key: 'elsewhere', queue: 'mails' },
    ])
  })

  test('of several timers of one name the one is chosen among those whose message was deleted', async () => {
    const [first, second] = await bench.hold(2)

    await settle([
      { ...first!, followOns: [keep('landed')] },
      { ...second!, token: otherToken, followOns: [replace('lost')] },
    ])

    expect(await keysOf()).toEqual([null, 'landed'])
  })

  test('the chosen one of several meets one that waits as it would alone', async () => {
    const [first, second] = await bench.hold(2)
    await bench.publish(keep('waiting', inMinutes(5)))
    await bench.publish(keep('waiting', { timerId: 'u', ...inMinutes(5) }))

    await settle([{ ...first!, followOns: [keep('a'), keep('b')] }])
    await settle([
      {
        ...second!,
        followOns: [keep('c', { timerId: 'u' }), replace('d', { timerId: 'u' }), keep('e', { timerId: 'u' })],
      },
    ])

    expect(await bench.rows()).toMatchObject([
      { key: 'waiting', timerId: 't' },
      { key: 'd', timerId: 'u' },
    ])
  })
}
