import { describe, expect, test } from 'vitest'
import { draftWith } from '../../../../tests/support/settling-statements.ts'
import { buryDead } from './bury-dead.ts'
import { claimInOrder, type OrderedQueue } from './claim-in-order.ts'
import { deleteAcked } from './delete-acked.ts'
import { deleteWithFollowOns } from './delete-with-follow-ons.ts'
import { discardDead } from './discard-dead.ts'
import { insertMessages } from './insert-messages.ts'
import { joinKeys } from './join-keys.ts'
import { keyLock, keysGate, lockKeys, mostKeyLocks } from './lock-keys.ts'
import { resolveNames } from './names.ts'
import { parkDead, quarantineDead } from './quarantine-dead.ts'
import { registerQueues } from './register-queues.ts'
import type { Statement } from './statement.ts'
import { tellQueues } from './tell-queues.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const uuid = '0190163d-8694-739b-9aea-966c26f8ad91'
const hostile = `x'); drop table outbox; -- " \\ $1`
const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0

const wanted = (queue: string, keysFrom: string | null = null): OrderedQueue => ({
  ...{ queue, room: 5, leaseMs: 1_000, after: '7', dueFromMs: null, keysFrom },
  keys: [{ key: queue, after: '3' }],
})
const claiming = (keysFrom: string | null, generation: number | null = null, queue = 'orders') =>
  claimInOrder(names, { token: uuid, queues: [wanted(queue, keysFrom)], generation })
const ordered = (key: string) => ({ ...draftWith('x'), key, isOrdered: true })
const publishing = (keys: readonly string[], conflict: 'none' | 'replace' = 'none') =>
  insertMessages(
    names,
    { queue: 'orders', conflict, drafts: keys.map(ordered) },
    { wake: 'poll', mark: null },
  )
const following = (keys: readonly string[]) =>
  deleteWithFollowOns(names, {
    wake: 'poll',
    settled: [{ seq: '1', token: uuid, followOns: keys.map((key) => ordered(key)) }],
  })
const burial = { seq: '1', token: uuid, reason: 'r', error: null, attempts: 1 }

/** All of them, with a value of a caller wherever one may be. */
const carrying = (value: string): readonly Statement<unknown>[] => [
  claiming(value, null, value),
  claiming(value, 3, value),
  joinKeys(names, { queues: [value] }),
  registerQueues(names, { ordered: [value], others: [value] }),
  registerQueues(names, { ordered: [], others: [value] }),
  tellQueues(names, [value]),
  publishing([value]),
  following([value]),
  deleteAcked(names, [{ seq: value, token: value }], { isQuick: true }),
  deleteAcked(names, Array(2).fill({ seq: value, token: value }), { isQuick: true }),
  deleteAcked(names, [{ seq: value, token: value }], { isQuick: true, delivered: 'table' }),
  buryDead(names, [{ ...burial, reason: value, isNoted: true }]),
  quarantineDead(names, [{ ...burial, reason: value, isNoted: true }]),
  discardDead(names, [{ ...burial, reason: value, isNoted: true }]),
  parkDead(names, [{ ...burial, reason: value }]),
]

describe('every statement of ordered queues', () => {
  test('carries values of callers as parameters, and uses all that it has', () => {
    expect(carrying(hostile).map(({ text }) => text)).toEqual(carrying('orders').map(({ text }) => text))
    for (const { name, text, values } of carrying('orders')) {
      const used = new Set(Array.from(text.matchAll(/\$(\d+)/g), (match) => Number(match[1])))
      expect([name, [...used].sort((a, b) => a - b)]).toEqual([name, values.map((_, index) => index + 1)])
      for (const value of values) expect(typeof value).toMatch(/^(string|number)$|^object$/)
    }
  })
})

describe('the locks of keys', () => {
  test('differ by table, queue and key, and from those of the gate', () => {
    const other = resolveNames({ schema: 'public', table: 'other' })
    const all = [
      keyLock(names, 'q', 'k'),
      keyLock(other, 'q', 'k'),
      keysGate(names, 'q'),
      keysGate(other, 'q'),
    ]

    expect(new Set(all).size).toBe(4)
    // A queue and a key that run into each other would share locks with other pairs.
    expect(keyLock(names, 'q', 'k')).toContain('q || chr(31) || k')
  })

  test('are asked for in one order, after the gate, and the rows are made of what they give', () => {
    const { text } = publishing(['a', 'b'])

    expect(text).toMatch(/gated as materialized[\s\S]*pg_advisory_xact_lock_shared\(g\.lock\)/)
    expect(text).toMatch(
      /ordered as materialized[\s\S]*count\(pg_advisory_xact_lock\(k\.lock\)\)[\s\S]*from gated,[\s\S]*order by 1 offset 0\) as k/,
    )
    expect(text).toMatch(/from drafts,\s+ordered\s+where/)
  })

  test.each([
    [mostKeyLocks, false],
    [mostKeyLocks + 1, true],
  ])('of %i keys: the gate alone, and for oneself: %s', (keys, isGated) => {
    const many = Array.from({ length: keys }, (_, n) => `k${n}`)
    for (const { text } of [publishing(many), following(many)]) {
      expect(text.includes('pg_advisory_xact_lock(k.lock)')).toBe(!isGated)
      expect(text.includes('pg_advisory_xact_lock(g.lock)')).toBe(isGated)
    }
  })

  test('count keys, not messages', () => {
    const many = Array.from({ length: mostKeyLocks + 1 }, () => 'k')

    expect(publishing(many).text).toBe(publishing(['k']).text)
    expect(lockKeys(names, 'x', true)).not.toContain('gated as')
  })

  test('are not in statements without an order', () => {
    const plain = { ...draftWith('x'), key: 'k' }
    const batch = { queue: 'orders', conflict: 'none', drafts: [plain] } as const
    const { text } = insertMessages(names, batch, { wake: 'poll', mark: null })

    expect(text).not.toMatch(/advisory_xact_lock|later_key/)
  })

  test('of follow-ons are not waited for longer than names are', () => {
    expect(following(['a']).text).toContain(`'lock_timeout', '100ms'`)
  })
})

describe('the key of a message for later', () => {
  test('is kept apart; so is that of a timer that may replace another, whenever it is due', () => {
    const [none, replacing] = (['none', 'replace'] as const).map(
      (conflict) => publishing(['a'], conflict).text,
    )

    for (const text of [none, replacing]) expect(text).toMatch(/body, key, later_key, timer_id/)
    expect(none).not.toContain('when timer is not null then')
    expect(replacing).toMatch(
      / case when timer is not null then coalesce\(case when .* end, statement_timestamp\(\)\) else case/,
    )
    expect(replacing).toContain('later_key = excluded.later_key')
  })

  test('is nowhere but in its place, where all are due at once and replace nothing', () => {
    const now = { schedule: { kind: 'now' } } as const
    const drafts = [{ ...ordered('a'), ...now, timerId: null }]
    const batch = { queue: 'orders', conflict: 'none', drafts } as const
    const { text } = insertMessages(names, batch, { wake: 'poll', mark: null })

    expect(text).toContain('$1::text, substring($2::bytea from first for size), key, headers')
    expect(text).not.toMatch(/later_key|due_at/)
    const timer = { ...batch, conflict: 'replace', drafts: [{ ...ordered('a'), ...now }] } as const
    expect(insertMessages(names, timer, { wake: 'poll', mark: null }).text).toContain(
      'case when timer is not null then statement_timestamp() end',
    )
  })

  test('becomes its key by a delete and an insert, so many at a time, and by locks that are not waited for', () => {
    const { text, values } = joinKeys(names, { queues: ['a', 'b'] })

    expect(values).toEqual(['["a","b"]', 2])
    expect(text).toContain('limit 500')
    expect([count(text, /pg_try_advisory/g), count(text, /pg_advisory/g)]).toEqual([2, 0])
    expect(text).toMatch(/for update of m skip locked/)
    expect(text).toMatch(/order by due_at, seq\s+returning seq/)
    const [, into, from] = text.match(/insert into \S+ \(([^)]*)\)\s+select (.*)\n/) ?? []
    expect(from).toBe(into?.replace(' key,', ' later_key,'))
  })
})

describe('the claim in order', () => {
  test('has one text for all that hop, and a shorter one for those that do not', () => {
    expect(claiming('').text).toBe(claiming('x').text)
    expect(claiming('').text).toContain('hops as')
    expect(claiming(null).text).not.toContain('hops')
  })

  test('binds its queues, their number, the largest room, the token, and a generation where there is one', () => {
    const queues = [wanted('a'), { ...wanted('b'), room: 9 }]

    const [first, second] = queues.map(({ keys: _, ...queue }) => queue)
    const asked = [
      { ...first, ord: 0, keys: ['a'], afters: '{3}' },
      { ...second, ord: 1, keys: ['b'], afters: '{3}' },
    ]
    expect(claimInOrder(names, { token: uuid, queues }).values).toEqual([JSON.stringify(asked), 2, 9, uuid])
    expect(claimInOrder(names, { token: uuid, queues: [] }).values).toEqual(['[]', 0, 0, uuid])
    expect(claiming(null, 3).values.at(-1)).toBe(3)
    expect(claiming(null).text).not.toMatch(/generation (is null|<=)/)
    // Due, behind what was settled, fresh, hops (twice), runs, and what has to join; and the next due time.
    expect(count(claiming('', 3).text, /generation <= \$5::bigint/g)).toBe(8)
  })

  test('locks rows by their place alone, steps over those that are locked, and waits for none', () => {
    const { text } = claiming('')

    expect([count(text, /for update/g), count(text, /for update of m skip locked/g)]).toEqual([2, 2])
    expect(
      count(
        text,
        /where (m\.ctid = r\.seen\s+and )?m\.seq = [rf]\.seq[\s\S]{0,300}?for update of m skip locked/g,
      ),
    ).toBe(2)
  })

  test('does not wait for the disk: what it writes may be lost with the server', () => {
    expect(claiming(null).text).toContain(`set_config('synchronous_commit', 'off', true)`)
  })
})

describe('settlements', () => {
  const fences = ['1', '2'].map((seq) => ({ seq, token: uuid.replace('1', seq) }))

  test.each(['delete', 'table'] as const)(
    'of links need not wait for the disk, in this transaction alone (%s)',
    (delivered) => {
      const quick = deleteAcked(names, fences, { delivered, isQuick: true })
      const slow = deleteAcked(names, fences, { delivered })

      expect(quick.text).toContain(`set_config('synchronous_commit', 'off', true)`)
      expect(quick.text).toMatch(/using quick, unnest/)
      expect(slow.text).not.toContain('synchronous_commit')
      expect(quick.values).toEqual(slow.values)
    },
  )

  test('of one link do without a list, and are fenced all the same', () => {
    const { text, values, input } = deleteAcked(names, fences.slice(0, 1), { isQuick: true })

    expect(values).toEqual(['1', uuid])
    expect(text).toContain(`set_config('synchronous_commit', 'off', true)`)
    expect(text).toContain('and m.lease_token = $2::text::uuid')
    expect(input).toEqual({ fences: fences.slice(0, 1), delivered: 'delete' })
  })

  test.each([buryDead, quarantineDead])(
    'note a burial on the next of its key where that is asked for ($name)',
    (bury) => {
      const [plain, noted] = [[burial], [burial, { ...burial, isNoted: true }]].map((all) => bury(names, all))

      expect(plain!.text).not.toMatch(/after_dead|is_noted/)
      expect(noted!.text).toMatch(
        /, next as materialized \(\s+select g\.id,[^;]+\s+where g\.is_noted\n\), noted as/,
      )
      expect(noted!.text).toMatch(/set after_dead = next\.id\s+from next\s/)
    },
  )

  test('that discard note by the text by which others do', () => {
    const notedBy = ({ text }: Statement<unknown>) => text.match(/, noted as \([\s\S]*?\n\)\n/)?.[0]
    const [discarded, buried] = [discardDead, buryDead].map((bury) =>
      bury(names, [{ ...burial, isNoted: true }]),
    )

    expect(notedBy(discarded!)).toBe(notedBy(buried!))
    expect(notedBy(discarded!)).toContain('after_dead')
  })

  test('that hold their key note nothing, whatever is asked for', () => {
    expect(parkDead(names, [{ ...burial, isNoted: true }]).text).toBe(parkDead(names, [burial]).text)
  })

  test('park as they quarantine, and say that the key is held', () => {
    const [park, quarantine] = [parkDead(names, [burial]), quarantineDead(names, [burial])]

    expect([park.name, quarantine.name]).toEqual(['park_dead', 'quarantine_dead'])
    expect(park.text.replace('parked_at = now()', 'parked_at = null')).toBe(quarantine.text)
  })
})

test('queues are registered only by who has some in order, and never taken back', () => {
  const both = registerQueues(names, { ordered: ['a'], others: ['b'] })
  const none = registerQueues(names, { ordered: [], others: ['b'] })

  expect(both.values).toEqual(['["b"]', '["a"]'])
  expect(none.values).toEqual(['["b"]'])
  expect(none.text).not.toContain('insert')
  expect(both.text).not.toContain(`'none'`)
})
