import { describe, expect, test } from 'vitest'
import type { ClaimedQueue, MessageRow, QueueRow } from '../sql/claim-messages.ts'
import { foundOf, queuesOf } from './claim-answer.ts'

/** A fresh message; with `due`, one that was due then. */
function messageOf(seq: string, given: Partial<MessageRow> = {}): MessageRow {
  const fixed = {
    kind: 'message',
    queue: 'orders',
    key: null,
    timer: null,
    body: 'eA==',
    headers: null,
  } as const
  const counts = {
    attempts: '0',
    deliveries: '1',
    suspect: 'false',
    created: '1700000000123.456000',
    first: null,
    generation: null,
  }
  return { ...fixed, ...counts, id: `id-${seq}`, seq, due: null, ...given }
}

function queueOf(queue: string): QueueRow {
  const seen = { own: '10', snapshot: '10:10:', top: '0', nextdue: null, lowest: null, pause: null }
  return { kind: 'queue', queue, ...seen, now: '1700000009999.5' }
}

/** What a claim of these queues finds when it is answered so. */
function found(messages: readonly MessageRow[], queues = ['orders']) {
  const place = { room: 10, leaseMs: 30_000, after: '0', dueFromMs: null, sweep: false }
  const asked: readonly ClaimedQueue[] = queues.map((queue) => ({ queue, ...place }))
  const rows = [...queues.map(queueOf), ...messages]
  const answer = { rows, asked, token: 'token', isSweep: false, sentAt: 0, receivedAt: 5 }
  return queuesOf(answer).map((queue) => foundOf(queue, answer).held.map(({ lease }) => lease))
}

describe('what a claim gives', () => {
  test('what is due comes before what is fresh, by due time and then by seq, as numbers', () => {
    const [leases] = found([
      messageOf('100'),
      messageOf('9', { due: '1700000000500.25' }),
      messageOf('99'),
      messageOf('10', { due: '1700000000500.25' }),
      messageOf('11', { due: '999999999999.5' }),
    ])

    expect(leases!.map(({ seq }) => seq)).toEqual(['11', '9', '10', '99', '100'])
  })

  test('messages come with the queue they belong to', () => {
    const both = found([messageOf('1'), messageOf('2', { queue: 'mails' })], ['orders', 'mails'])

    expect(both.map((leases) => leases.map(({ seq }) => seq))).toEqual([['1'], ['2']])
  })

  test('a lease has the row as it is stored, its attempt counts from one, and it tells the time of its claim', () => {
    const given = {
      key: 'k',
      timer: 't',
      headers: '{"a":"b"}',
      attempts: '2',
      deliveries: '5',
      generation: '7',
    }
    const [leases] = found([messageOf('1', { ...given, first: '1700000000500.25' })])

    expect(leases).toEqual([
      {
        ...{ token: 'token', id: 'id-1', seq: '1', queue: 'orders', key: 'k', timerId: 't' },
        ...{ body: Buffer.from('x'), headers: { a: 'b' }, attempt: 3, deliveries: 5, generation: 7 },
        ...{ isOrdered: false, afterDead: null },
        createdAt: new Date(1_700_000_000_123),
        firstAttemptAt: new Date(1_700_000_000_500),
        claimedAt: new Date(1_700_000_009_999),
      },
    ])
  })

  test('the delivery of a suspect is not counted yet: its lease says what it will be', () => {
    const [leases] = found([messageOf('1', { deliveries: '2', suspect: 'true' }), messageOf('2')])

    expect(leases!.map(({ deliveries }) => deliveries)).toEqual([3, 1])
  })

  test('a message that is no timer and has not failed has neither a name nor a first failure', () => {
    expect(found([messageOf('1')])).toMatchObject([[{ timerId: null, attempt: 1, firstAttemptAt: null }]])
  })
})
