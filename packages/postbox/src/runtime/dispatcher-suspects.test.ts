import { describe, expect, test } from 'vitest'
import { leaseOf } from '../../../../tests/support/delivery-bench.ts'
import { dispatcherOf, idle, leased, leasedUpTo, seqsOf } from '../../../../tests/support/dispatcher-bench.ts'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { createGate } from './gate.ts'
import type { Held } from './held.ts'

const suspect = (seq: number, silent = 1): Held =>
  leaseOf({ seq: `${seq}`, attempt: 1, deliveries: 1 + silent })

/** Counts that wait until they are told what they came to. */
function counting() {
  const asked: { readonly seq: string; answer(isCounted: boolean): Promise<void> }[] = []
  const count = ({ lease }: Held): Promise<boolean> =>
    new Promise((resolve) => {
      const answer = (isCounted: boolean): Promise<void> => {
        resolve(isCounted)
        return idle()
      }
      asked.push({ seq: lease.seq, answer })
    })
  return { asked, count }
}

describe('a suspect', () => {
  test('is counted before it is run, and others are not', async () => {
    const { asked, count } = counting()
    const { runs, told, take } = dispatcherOf({ concurrency: 2 }, { count })
    await take([suspect(1)])
    const before = [asked.map(({ seq }) => seq), seqsOf(runs), told.length]
    await asked[0]!.answer(true)

    expect([before, seqsOf(runs)]).toEqual([[['1'], [], 0], ['1']])
    expect(told).toMatchObject([{ kind: 'dispatched', seq: '1', deliveries: 2, isSuspect: true }])
    const ordinary = counting()
    await dispatcherOf({}, { count: ordinary.count }).take(leasedUpTo(2))
    expect(ordinary.asked).toEqual([])
  })

  test('is told of though nobody hears events: the log says who is at work', async () => {
    const { told, take } = dispatcherOf({}, { isHeard: false })
    await take([leased(1), suspect(2)])

    expect(told).toMatchObject([{ kind: 'dispatched', seq: '2', isSuspect: true }])
  })

  test('runs alone: what waits with it starts when it has ended, and the next one before that', async () => {
    const { dispatcher, runs, take } = dispatcherOf({ concurrency: 3 })
    await take([leased(1), suspect(2), leased(3), suspect(4)])
    const steps = [seqsOf(runs)]
    await runs[0]!.end()
    steps.push(seqsOf(runs))
    await runs[1]!.end()
    steps.push(seqsOf(runs))

    expect(steps).toEqual([['2'], ['2', '4'], ['2', '4', '1', '3']])
    expect(dispatcher.running).toBe(2)
  })

  test('waits for what runs, in other subscriptions, too; these start nothing meanwhile', async () => {
    const clock = fakeClock()
    const gate = createGate(clock, new AbortController().signal)
    const [first, second] = [dispatcherOf({}, { clock, gate }), dispatcherOf({}, { clock, gate })]
    await first.take([leased(1)])
    await second.take([suspect(2)])
    await first.take([leased(3)])
    const before = [seqsOf(first.runs), seqsOf(second.runs)]
    await first.runs[0]!.end()
    const during = [seqsOf(first.runs), seqsOf(second.runs)]
    await second.runs[0]!.end()

    expect([before, during]).toEqual([
      [['1'], []],
      [['1'], ['2']],
    ])
    expect(seqsOf(first.runs)).toEqual(['1', '3'])
  })

  test('that takes longer than a second is joined by others', async () => {
    const { clock, runs, take } = dispatcherOf({ concurrency: 3 })
    await take([suspect(1), leased(2), leased(3)])
    clock.advance(1_000)
    await idle()

    expect(seqsOf(runs)).toEqual(['1', '2', '3'])
  })

  test('waits until what became of the one before is written', async () => {
    const { asked, count } = counting()
    const { runs, finished, take } = dispatcherOf({}, { count })
    const [first, second] = [suspect(1), suspect(2)]
    const written: (() => void)[] = []
    await take([first, second])
    const { over } = first
    first.over = () => void written.push(() => over?.('gone'))
    await asked[0]!.answer(true)
    await runs[0]!.end()
    const before = [finished.length, asked.length]
    written[0]!()
    await idle()

    expect([before, asked.map(({ seq }) => seq)]).toEqual([
      [1, 1],
      ['1', '2'],
    ])
  })

  test('that could not be counted, or was lost, is given back, and the next one has its turn', async () => {
    const { asked, count } = counting()
    const { runs, unstarted, take } = dispatcherOf({}, { count })
    await take([suspect(1), suspect(2)])
    await asked[0]!.answer(false)
    await asked[1]!.answer(true)

    expect([unstarted, seqsOf(runs)]).toEqual([['1'], ['2']])
  })

  test('whose lease ended while it was counted is not run', async () => {
    const { asked, count } = counting()
    const { clock, unstarted, take, runs } = dispatcherOf({}, { count })
    const late = suspect(1)
    late.deadline = 500
    await take([late])
    clock.advance(500)
    await asked[0]!.answer(true)

    expect([unstarted, seqsOf(runs)]).toEqual([['1'], []])
  })

  test('whose lease ended while it waited is neither counted nor run', async () => {
    const { asked, count } = counting()
    const { clock, unstarted, take, runs } = dispatcherOf({ concurrency: 2 }, { count })
    await take([leased(1)])
    const late = suspect(2)
    late.deadline = 500
    await take([late, suspect(3)])
    clock.advance(500)
    await runs[0]!.end()

    expect([unstarted, asked.map(({ seq }) => seq)]).toEqual([['2'], ['3']])
  })

  test('that was delivered too often is dead without a turn, a count or an end of what runs', async () => {
    const { asked, count } = counting()
    const { runs, finished, take } = dispatcherOf({ concurrency: 2, maxDeliveries: 3 }, { count })
    await take([leased(1)])
    await take([suspect(2, 3), leased(3)])

    expect(finished).toEqual([['2', { kind: 'exhausted' }]])
    expect([asked, seqsOf(runs)]).toEqual([[], ['1', '3']])
  })

  test('waits for a slot like any other, and stops nobody meanwhile', async () => {
    const clock = fakeClock()
    const gate = createGate(clock, new AbortController().signal)
    const [full, other] = [
      dispatcherOf({ concurrency: 1 }, { clock, gate }),
      dispatcherOf({}, { clock, gate }),
    ]
    await full.take([leased(1)])
    await full.take([suspect(2)])
    await other.take([leased(3)])
    const before = [seqsOf(full.runs), seqsOf(other.runs)]
    await other.runs[0]!.end()
    await full.runs[0]!.end()

    expect([before, seqsOf(full.runs)]).toEqual([
      [['1'], ['3']],
      ['1', '2'],
    ])
  })

  test('of a batch subscription is a batch of its own', async () => {
    const { runs, take } = dispatcherOf({}, { batches: { size: 2, maxWaitMs: 50 } })
    await take([leased(1), suspect(2), leased(3), suspect(4)])
    await runs[0]!.end()
    await runs[1]!.end()

    expect(seqsOf(runs)).toEqual(['2', '4', '1 3'])
  })

  test('that waits is given back by a stop; one that is being counted, too, and what runs is not', async () => {
    const { asked, count } = counting()
    const { dispatcher, runs, unstarted, take } = dispatcherOf({}, { count })
    await take([suspect(1), suspect(2)])
    dispatcher.close()
    const before = [...unstarted]
    await asked[0]!.answer(true)

    expect([before, unstarted, runs, asked.length]).toEqual([['2'], ['2', '1'], [], 1])
  })

  test('takes room while it waits', async () => {
    const { dispatcher, take } = dispatcherOf({ concurrency: 2, prefetch: 3 })
    await take([leased(1)])
    await take([suspect(2), suspect(3)])

    expect([dispatcher.room, dispatcher.running]).toEqual([2, 1])
  })
})
