// Clauses of scenarios (tests/conformance/README.md) that no other unit test asks for.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { draftFollowOn } from './core/follow-on-draft.ts'
import { linear } from './core/retry.ts'
import { createOutbox } from './outbox.ts'

// U-SCH-10
describe('the name of the dead letters', () => {
  const named = (dead: string) => () => createOutbox({ names: { dead } })

  test('may be longer than a table of messages can be called: no channel is made of it', () => {
    expect(named('d'.repeat(55))).not.toThrow()
    expect(() => createOutbox({ table: 'd'.repeat(55) })).toThrow(/63 bytes/)
  })

  test.each([56, 80])(
    'is refused at %i bytes: Postgres would cut its sequence, or itself, short',
    (bytes) => {
      expect(named('d'.repeat(bytes))).toThrow(expect.objectContaining({ code: 'OUTBOX_INVALID_NAME' }))
    },
  )
})

// U-RTY-05
test('linear spreads each of its growing delays by its jitter, and no further', () => {
  const policy = linear({ initialMs: 1_000, stepMs: 500, jitter: 0.5, maxAttempts: null })
  const chances = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  const at = new Date(0)

  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), chances, (attempt, chance) => {
      const plainMs = 1_000 + 500 * (attempt - 1)
      const failure = { attempt, error: null, firstAttemptAt: at, lastAttemptAt: at, random: () => chance }

      expect(policy(failure)).toBeCloseTo(plainMs * (0.75 + 0.5 * chance), 6)
    }),
  )
})

// U-PUB-07, U-PUB-08, U-PUB-17
test.each<[string, object, string]>([
  ['an empty queue', { queue: '' }, 'OUTBOX_INVALID_QUEUE'],
  ['a queue of 256 bytes', { queue: 'x'.repeat(256) }, 'OUTBOX_INVALID_QUEUE'],
  ['a queue that is no string', { queue: 7 }, 'OUTBOX_INVALID_QUEUE'],
  ['a delay and a time', { options: { delayMs: 1, at: new Date() } }, 'OUTBOX_INVALID_TIME'],
  ['a time as text', { options: { at: '2026-01-01T00:00:00Z' } }, 'OUTBOX_INVALID_TIME'],
  ['an invalid Date', { options: { at: new Date(Number.NaN) } }, 'OUTBOX_INVALID_TIME'],
])('a follow-on with %s is refused, as any publish is', async (_, wrong, code) => {
  const limits = { queues: null, codec: undefined, maxBodyBytes: 1_000, generation: null, source: null }
  const rules = { ...limits, newId: () => '0190163d-8694-739b-9aea-966c26f8ad91', middleware: [] }
  const publication = { queue: 'emails', body: 1, options: {}, ...wrong }

  await expect(draftFollowOn(rules, publication)).rejects.toMatchObject({ code })
})

// U-HLT-01
test('ping of an outbox without a database says so, and is not taken for a database that fails', async () => {
  await expect(createOutbox().ping()).rejects.toMatchObject({ code: 'OUTBOX_NO_DATABASE' })
})
