import { describe, expect, test } from 'vitest'
import { resolveNames } from './names.ts'
import { checkClear, getUp, lieDown, sendWord } from './sleep.ts'
import { lockNames, publishersLock, sleepersLock, wakeClause, wakeOfRow, wakeQueuesClause } from './wake.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const first = { queue: '$1::text', isNow: false }
const each = { queue: 'q.queue', isNow: false }

describe('wakeClause', () => {
  test('whoever polls is never notified', () => {
    expect(wakeClause(names, 'poll', first)).not.toMatch(/notify|lock/)
  })

  // U-PUB-03
  test('always: notifies the channel of the outbox with the queue, and takes no lock', () => {
    const text = wakeClause(names, 'always', first)

    expect(text).toContain("pg_notify('postbox:public.outbox', $1::text)")
    expect(text).not.toContain('lock')
  })

  test('quiet: takes P before it tries F, and lets F go', () => {
    const text = wakeClause(names, 'quiet', { queue: '$2::text', isNow: false })
    const steps = ['pg_try_advisory_xact_lock_shared', 'pg_try_advisory_lock(', 'pg_advisory_unlock('].map(
      (call) => text.indexOf(call),
    )

    expect(steps).not.toContain(-1)
    expect([...steps].sort((a, b) => a - b)).toEqual(steps)
    expect(text).toContain("hashtextextended('postbox:public.outbox publishers ' || $2::text, 0)")
    expect(text.match(/'postbox:public\.outbox sleepers ' \|\| \$2::text/g)).toHaveLength(2)
  })

  // U-PUB-09
  test.each(['quiet', 'always'] as const)(
    '%s: says nothing of rows due later, nor into a half-full queue',
    (wake) => {
      const text = wakeClause(names, wake, first)

      expect(text).toContain("due_at is null or due_at < statement_timestamp() + interval '10 seconds'")
      expect(text).toContain('pg_notification_queue_usage() < 0.5')
    },
  )

  test('does not ask when rows are due that are known to be due at once', () => {
    const text = wakeClause(names, 'quiet', { ...first, isNow: true })

    expect(text).toContain('(select 1 from inserted limit 1) as one')
    expect(text).not.toContain('due_at')
  })

  // In a transaction that is minutes old, a row due in a second would lie minutes after now().
  test.each(['quiet', 'always', 'poll'] as const)(
    '%s: the start of the transaction is never asked for',
    (wake) => {
      expect(wakeClause(names, wake, first)).not.toMatch(/\bnow\(\)|current_timestamp/)
    },
  )

  test('another word is an error of ours', () => {
    expect(() => wakeClause(names, 'loud' as never, first)).toThrow(/unreachable/)
  })
})

describe('wakeOfRow', () => {
  const row = { queue: '$2::text', locks: ['$4::text', '$5::text'], isNow: false } as const

  test('whoever polls is never notified', () => {
    expect(wakeOfRow(names, 'poll', row)).toBe('false')
  })

  test('always: notifies the channel of the outbox with the queue, and takes no lock', () => {
    const text = wakeOfRow(names, 'always', row)

    expect(text).toContain("pg_notify('postbox:public.outbox', $2::text)")
    expect(text).not.toContain('lock')
  })

  test('quiet: takes P before it tries F, lets F go, and only then asks whether to notify', () => {
    const text = wakeOfRow(names, 'quiet', row)
    const [publishers, sleepers] = ['hashtextextended($4::text, 0)', 'hashtextextended($5::text, 0)']
    const steps = [
      `case\n         when case when pg_try_advisory_xact_lock_shared(${publishers}) then pg_try_advisory_lock(${sleepers}) end`,
      `then not pg_advisory_unlock(${sleepers})`,
      'when (due_at is null',
      'pg_notification_queue_usage() < 0.5',
    ].map((step) => text.indexOf(step))

    expect(steps).not.toContain(-1)
    expect([...steps].sort((a, b) => a - b)).toEqual(steps)
  })

  test('quiet: the locks that it is given the names of are those of the sleepers', () => {
    const [publishers, sleepers] = lockNames(names, 'orders')

    expect(publishersLock(names, 'q')).toBe(`hashtextextended('${publishers.slice(0, -6)}' || q, 0)`)
    expect(sleepersLock(names, 'q')).toBe(`hashtextextended('${sleepers.slice(0, -6)}' || q, 0)`)
    expect([publishers, sleepers].map((name) => name.slice(-7))).toEqual([' orders', ' orders'])
  })

  test.each(['quiet', 'always'] as const)(
    '%s: says nothing of a row due later, nor into a half-full queue',
    (wake) => {
      const soon = "(due_at is null or due_at < statement_timestamp() + interval '10 seconds') and "

      expect(wakeOfRow(names, wake, row)).toContain(`when ${soon}pg_notification_queue_usage() < 0.5 then`)
      expect(wakeOfRow(names, wake, { ...row, isNow: true })).toBe(
        wakeOfRow(names, wake, row).replace(soon, ''),
      )
      expect(wakeOfRow(names, wake, row)).not.toMatch(/\bnow\(\)|current_timestamp/)
    },
  )
})

describe('wakeQueuesClause', () => {
  test.each(['quiet', 'always', 'poll'] as const)('%s: is wakeClause, for each queue once', (wake) => {
    const one = '(select 1 from inserted where '
    const [head = '', rest = ''] = wakeClause(names, wake, each).split(one)
    const every = rest.replace(' limit 1) as one', ') as q')

    expect(wakeQueuesClause(names, wake)).toBe(
      wake === 'poll' ? head : `${head}(select distinct queue from inserted where ${every}`,
    )
  })
})

describe('the statements of sleepers', () => {
  const publishers = publishersLock(names, 'q.queue')
  const sleepers = sleepersLock(names, 'q.queue')

  test('speak of the same two locks as publishers do', () => {
    const publisher = wakeClause(names, 'quiet', each)
    const sleeper = lieDown(names, []).text

    for (const lock of [publishers, sleepers]) {
      expect(publisher).toContain(`(${lock})`)
      expect(sleeper).toContain(`(${lock})`)
    }
    expect(publishers).not.toBe(sleepers)
  })

  test('who lies down takes F shared, waiting for it, before it tries P for a moment', () => {
    const { text } = lieDown(names, [])
    const steps = [
      `with down as materialized (\n  select q.queue, pg_advisory_lock_shared(${sleepers})`,
      `when pg_try_advisory_lock(${publishers})`,
      `then pg_advisory_unlock(${publishers})`,
      'from down as q',
    ].map((step) => text.indexOf(step))

    expect(steps).not.toContain(-1)
    expect([...steps].sort((a, b) => a - b)).toEqual(steps)
  })

  test('who asks again tries P for a moment and leaves F alone; who gets up lets F go and leaves P alone', () => {
    expect(checkClear(names, []).text).toContain(`when pg_try_advisory_lock(${publishers})`)
    expect(checkClear(names, []).text).toContain(`then pg_advisory_unlock(${publishers})`)
    expect(checkClear(names, []).text).not.toContain(sleepers)
    expect(getUp(names, []).text).toContain(`pg_advisory_unlock_shared(${sleepers})`)
    expect(getUp(names, []).text).not.toContain(publishers)
  })

  // A lock of the transaction would be gone with the statement.
  test.each([lieDown, checkClear, getUp].map((statement) => statement(names, ['q'])))(
    '$name takes queues as one JSON text, and no lock that ends with the statement',
    (one) => {
      expect(one.values).toEqual(['["q"]'])
      expect(one.text).not.toContain('_xact_')
      expect(one.text).toMatch(/\)::text as (clear|up)\s+from /)
    },
  )

  test('a word to ourselves is not sent into a half-full queue, and the answer tells whether it was', () => {
    const { text, values } = sendWord('postbox:1')

    expect(text).toMatch(/^\s*select 'sent' as sent/)
    expect(text).toContain(
      "(select pg_notify($1::text, '') as word where pg_notification_queue_usage() < 0.5)",
    )
    expect(values).toEqual(['postbox:1'])
  })
})
