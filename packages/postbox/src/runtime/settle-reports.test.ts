import { describe, expect, test } from 'vitest'
import { cut, scriptedSettler, settled } from '../../../../tests/support/scripted-settler.ts'
import {
  acked,
  dead,
  failed,
  followed,
  released,
  snoozed,
  thrown,
} from '../../../../tests/support/settlements.ts'
import type { Settlement } from '../core/settlement.ts'

type Kind = (seq: string) => Settlement

const aboutOf = (seq: string) => ({ queue: 'orders', id: `id-${seq}`, seq, attempt: 2, deliveries: 3 })
const quiet: readonly Kind[] = [acked, followed, released, snoozed]
const logged: readonly Kind[] = [failed, dead]

describe('what is told of a write that landed', () => {
  test.each<[kind: Kind, event: object]>([
    [acked, { kind: 'acked', followOns: 0 }],
    [followed, { kind: 'acked', followOns: 1 }],
    [released, { kind: 'released' }],
    [snoozed, { kind: 'snoozed', delayMs: 7.5 }],
    [failed, { kind: 'retried', delayMs: 5.4, error: thrown }],
  ])('is its end, with how long the handler ran, and not before it landed (case %#)', async (kind, event) => {
    const { settle, sent, told } = scriptedSettler()
    await settle([kind('1')])
    const before = [...told]
    await sent[0]!.answer()

    expect(before).toEqual([])
    expect(told).toEqual([{ ...event, ...aboutOf('1'), durationMs: 12 }])
  })

  test('as retried or dead is what was thrown itself', async () => {
    const { settle, answerAll, told } = scriptedSettler()
    await settle([failed('1'), dead('2')])
    await answerAll()

    const errors = told.flatMap((event) => ('error' in event ? [event.error] : []))
    expect(errors.map((error) => Object.is(error, thrown))).toEqual([true, true])
  })

  // U-MET-06
  test('of a handler that did not run has no duration', async () => {
    const { settler, answerAll, told } = scriptedSettler()
    settler.settle(dead('1'), { maxBatch: 1, durationMs: null }, () => {})
    await settled()
    await answerAll()

    expect(told[0]).toMatchObject({ kind: 'dead', durationMs: null })
  })
})

// U-DLQ-03
describe('a burial that landed', () => {
  const headers = { type: 'order.paid', source: 'shop', target: 'billing', more: 'yes' }

  test('is told with all that an alert needs, and that the dead letters have it', async () => {
    const { settle, sent, told } = scriptedSettler()
    await settle([dead('1', { key: 'customer-7', headers })])
    const before = [...told]
    await sent[0]!.answer()

    expect(before).toEqual([])
    expect(told).toEqual([
      {
        kind: 'dead',
        ...aboutOf('1'),
        durationMs: 12,
        reason: 'rejected',
        attempts: 2,
        error: thrown,
        key: 'customer-7',
        isParked: false,
        headers,
        type: 'order.paid',
        source: 'shop',
        target: 'billing',
      },
      { kind: 'dlq_written', ...aboutOf('1'), reason: 'rejected', isQuarantined: false },
    ])
  })

  test('of a message without a type and a source says so, and its target is its queue', async () => {
    const { settle, sent, told } = scriptedSettler()
    await settle([dead('1')])
    await sent[0]!.answer()

    expect(told[0]).toMatchObject({ kind: 'dead', type: null, source: null, target: 'orders' })
  })

  test('is told as the settlement counted it, not as the lease does', async () => {
    const { settle, sent, told } = scriptedSettler()
    await settle([{ ...dead('1'), reason: 'max_deliveries', attempts: 1 } as Settlement])
    await sent[0]!.answer()

    expect(told).toMatchObject([
      { kind: 'dead', attempt: 2, attempts: 1, reason: 'max_deliveries' },
      { kind: 'dlq_written', reason: 'max_deliveries' },
    ])
  })

  test('that lost its lease is neither dead nor in the dead letters', async () => {
    const { settle, sent, told } = scriptedSettler()
    await settle([dead('1')])
    await sent[0]!.answer([])

    expect(told.map(({ kind }) => kind)).toEqual(['lease_lost'])
  })
})

describe('when nobody hears what is not logged', () => {
  test.each(quiet)('nothing is made of what went well (case %#)', async (kind) => {
    const { settle, sent, told, settler } = scriptedSettler({ isHeard: false })
    await settle([kind('1')])
    await sent[0]!.answer()

    expect(told).toEqual([])
    expect(Object.values(settler.settled)).toContain(1)
  })

  test.each(logged)('retried and dead are told all the same (case %#)', async (kind) => {
    const { settle, sent, told } = scriptedSettler({ isHeard: false })
    await settle([kind('1')])
    await sent[0]!.answer()

    expect(told[0]).toMatchObject({ ...aboutOf('1'), error: thrown })
  })

  test('that the dead letters have a message is told all the same', async () => {
    const { settle, sent, told } = scriptedSettler({ isHeard: false })
    await settle([dead('1')])
    await sent[0]!.answer()

    expect(told.map(({ kind }) => kind)).toEqual(['dead', 'dlq_written'])
  })

  test.each([...quiet, ...logged])('a lost lease is told all the same (case %#)', async (kind) => {
    const { settle, sent, told } = scriptedSettler({ isHeard: false })
    await settle([kind('1')])
    await sent[0]!.answer([])

    expect(told).toMatchObject([{ kind: 'lease_lost' }])
  })
})

// U-MET-04
describe('what came too late', () => {
  test.each<[kind: Kind, phase: string]>([
    [acked, 'terminal'],
    [followed, 'terminal'],
    [dead, 'terminal'],
    [failed, 'retry'],
    [snoozed, 'retry'],
    [released, 'retry'],
  ])('is told as lost, and only that, with what could not be written (case %#)', async (kind, phase) => {
    const { settle, sent, told } = scriptedSettler()
    await settle([kind('1')])
    await sent[0]!.answer([])

    const lost = { kind: 'lease_lost', ...aboutOf('1'), durationMs: 12, phase, mayHaveLanded: false }
    expect(told).toEqual([lost])
  })

  test('does not make its neighbours late', async () => {
    const { settle, sent, told } = scriptedSettler()
    await settle(['1', '2', '3'].map((seq) => acked(seq)))
    await sent[0]!.answer(['3', '1'])

    expect(told.map((event) => [event.kind, 'seq' in event && event.seq])).toEqual([
      ['acked', '1'],
      ['lease_lost', '2'],
      ['acked', '3'],
    ])
  })
})

test('a write that fails says what it is: a delete that publishes is told apart', async () => {
  const { settle, sent, told } = scriptedSettler()
  await settle([followed('1'), followed('2')])
  await sent[0]!.fail(cut)

  expect(told.at(-1)).toMatchObject({ kind: 'settle_failed', write: 'follow', messages: 2 })
})

describe('what is told of a message that its transaction has ended', () => {
  const { lease } = acked('1')

  test('is that it is acknowledged, with what it published', () => {
    const { settler, told } = scriptedSettler()
    settler.transacted(lease, { kind: 'committed', followOns: 2 }, 12)

    expect(told).toEqual([{ kind: 'acked', ...aboutOf('1'), durationMs: 12, followOns: 2 }])
    expect(settler.settled.acked).toBe(1)
  })

  test.each([true, false])(
    'is a lost lease where nobody can tell (it may have landed: %s)',
    (mayHaveLanded) => {
      const { settler, told } = scriptedSettler({ isHeard: false })
      settler.transacted(lease, { kind: 'unresolved', mayHaveLanded }, 12)

      expect(told).toEqual([
        { kind: 'lease_lost', ...aboutOf('1'), durationMs: 12, phase: 'terminal', mayHaveLanded },
      ])
      expect(settler.settled.lost).toBe(1)
    },
  )
})
