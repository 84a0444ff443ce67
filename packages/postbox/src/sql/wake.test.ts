import { describe, expect, test } from 'vitest'
import { resolveNames } from './names.ts'
import { wakeClause } from './wake.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })

describe('wakeClause', () => {
  test('whoever polls is never notified', () => {
    expect(wakeClause(names, 'poll', '$1::text')).not.toMatch(/notify|lock/)
  })

  // U-PUB-03
  test('always: notifies the channel of the outbox with the queue, and takes no lock', () => {
    const text = wakeClause(names, 'always', '$1::text')

    expect(text).toContain("pg_notify('postbox:public.outbox', $1::text)")
    expect(text).not.toContain('lock')
  })

  test('quiet: takes P before it tries F, and lets F go', () => {
    const text = wakeClause(names, 'quiet', '$2::text')
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
      const text = wakeClause(names, wake, '$1::text')

      expect(text).toContain("due_at is null or due_at < statement_timestamp() + interval '10 seconds'")
      expect(text).toContain('pg_notification_queue_usage() < 0.5')
    },
  )

  // In a transaction that is minutes old, a row due in a second would lie minutes after now().
  test.each(['quiet', 'always', 'poll'] as const)(
    '%s: the start of the transaction is never asked for',
    (wake) => {
      expect(wakeClause(names, wake, '$1::text')).not.toMatch(/\bnow\(\)|current_timestamp/)
    },
  )

  test('another word is an error of ours', () => {
    expect(() => wakeClause(names, 'loud' as never, '$1::text')).toThrow(/unreachable/)
  })
})
