import { expect, test } from 'vitest'
import { draftFollowOn } from './follow-on-draft.ts'
import type { Middleware, PublishCall } from './middleware.ts'

const id = '0190163d-8694-739b-9aea-966c26f8ad91'
const publication = { queue: 'orders', body: { orderId: 1 }, options: { key: 'k' } }

function rulesWith(...skins: NonNullable<Middleware['publish']>[]) {
  const middleware = skins.map((publish) => ({ publish }))
  const body = { queues: null, codec: undefined, maxBodyBytes: 1_000 }
  return { ...body, generation: null, source: null, newId: () => id, middleware }
}

test('a follow-on is checked and encoded as what is published at once', async () => {
  expect(await draftFollowOn(rulesWith(), publication)).toMatchObject({ id, queue: 'orders', key: 'k' })
  await expect(draftFollowOn(rulesWith(), { ...publication, body: 1n })).rejects.toMatchObject({
    code: 'OUTBOX_INVALID_BODY',
  })
})

test('for a middleware it is a publish like any other, whose receipt has no seq yet', async () => {
  const seen: unknown[] = []
  const rules = rulesWith(async (call: PublishCall, next) => {
    const receipts = await next({ trace: 't' })
    seen.push(call, receipts)
    return receipts
  })

  expect(await draftFollowOn(rules, publication)).toMatchObject({ id, headers: { trace: 't' } })
  expect(seen).toEqual([{ queue: 'orders', bodies: [{ orderId: 1 }] }, [{ id, seq: '' }]])
})

test('a middleware that answers without next keeps it back', async () => {
  expect(
    await draftFollowOn(
      rulesWith(async () => [null]),
      publication,
    ),
  ).toBeNull()
})
