import { expect, test } from 'vitest'
import type { Session } from '../adapters/executor.ts'
import type { Statement } from '../sql/statement.ts'
import { createLane, type LaneParts } from './lane.ts'

const statement = (name: string): Statement => ({ name, text: name, values: [] })

/** A lane over a database that writes down what is sent. */
function laneOf() {
  const events: string[] = []
  const run = async <Row>({ name }: Statement<Row>) => {
    events.push(name)
    return [{ isolation: 'read committed' }] as readonly unknown[] as readonly Row[]
  }
  const connect = async (): Promise<Session> => ({ run, release: () => {}, destroy: () => {} })
  const database = { run, connect } as unknown as LaneParts['database']
  return { lane: createLane({ database, statementTimeoutMs: 10_000 }), events }
}

test('what is written goes before the last answer is worked out, and who is asked for a statement is asked after', async () => {
  const { lane, events } = laneOf()
  await lane.run(statement('first'))
  events.length = 0
  const workOut = async (name: string): Promise<void> => {
    await lane.run(statement(name))
    // As far from the answer as a claim is.
    for (let turns = 0; turns < 3; turns++) await Promise.resolve()
    events.push(`${name} is worked out`)
  }
  await Promise.all([workOut('a'), lane.run(statement('b'))])
  await Promise.all([workOut('c'), lane.run(() => statement('d'))])

  expect(events).toEqual(['a', 'b', 'a is worked out', 'c', 'c is worked out', 'd'])
})
