import { describe, expect, test } from 'vitest'
import { claimMessages } from './claim-messages.ts'
import { resolveNames } from './names.ts'
import { pauseQueue, pausesChanged, resumeQueue } from './pause-queue.ts'
import { pauseFrom } from './pause-state.ts'
import { readPauses } from './read-pauses.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const hostile = `x'); drop table outbox; -- " \\ $1`
const input = { queue: hostile, by: hostile, wake: 'quiet' } as const

describe('pausing', () => {
  test.each([pauseQueue, resumeQueue])(
    'carries its values as parameters, and tells who listens (%o)',
    (of) => {
      const { text, values } = of(names, input)

      expect(values).toEqual([hostile, hostile])
      expect(text).not.toContain('drop table')
      expect(text).toContain(`pg_notify('postbox:public.outbox', '')`)
      expect(text).toContain('pg_notification_queue_usage() < 0.5')
    },
  )

  test.each([pauseQueue, resumeQueue])('tells nobody where nobody listens (%o)', (of) => {
    expect(of(names, { ...input, wake: 'poll' }).text).toContain('where false')
  })

  test('writes no column but its own: another says in which order the queue is delivered', () => {
    const written = [pauseQueue, resumeQueue].map((of) => of(names, input).text)
    for (const text of written) expect(text).not.toContain('message_order')
  })

  test('no queue has the name that stands for all of them', () => {
    expect(pausesChanged).toBe('')
  })

  test('is looked up in the table of queues by whoever claims or asks', () => {
    const { text, values } = readPauses(names, [hostile, 'a'], [hostile])
    expect(values).toEqual([JSON.stringify([hostile, 'a']), JSON.stringify([hostile])])
    expect(text).not.toContain('drop table')
    expect(claimMessages(names, { token: 't', queues: [] }).text).toContain('"public"."outbox_queues"')
  })

  test.each([null, 3])(
    'makes a claim answer no due time that would wake anybody, of generation %o',
    (generation) => {
      const { text } = claimMessages(names, { token: 't', queues: [], generation })
      expect(text).toMatch(/case when not w\.paused then\s+\(select [\s\S]*?\)\s+end as nextdue/)
    },
  )
})

test('a state is read from its text', () => {
  expect(pauseFrom(null)).toBeNull()
  expect(pauseFrom('{"paused": true, "at": "1700000000123.456", "by": "jo"}')).toEqual({
    isPaused: true,
    at: new Date(1_700_000_000_123),
    by: 'jo',
  })
  expect(pauseFrom('{"paused": true, "at": "0", "by": null, "mismatch": true}')).toEqual({
    isPaused: true,
    at: new Date(0),
    by: null,
    isMismatch: true,
  })
  expect(pauseFrom('{"paused": false, "at": "5", "by": null}')).toEqual({
    isPaused: false,
    at: new Date(5),
    by: null,
  })
})
