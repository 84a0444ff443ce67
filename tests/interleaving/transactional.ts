// A handler that works in a transaction: the fence first, then its work, then the delete, all in one commit.
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { fenceTransaction } from '../../packages/postbox/src/sql/fence-transaction.ts'
import type { Ending, Lease, Session, Step, Told } from './terms.ts'

const fenced: Ending = { kind: 'fenced' }
const acked: Ending = { kind: 'acked', followOns: [] }

/** Begins, and locks the first message in hand. Who has lost it rolls back, and does nothing more. */
export const fence: Step = {
  label: 'begin and fence',
  async perform(session) {
    const [lease] = session.hand
    if (lease === undefined) return []
    const began = await session.begin()
    const [row] = await session.run(fenceTransaction(session.names, [lease]))
    if (row === undefined) return [began, ...(await abort(session, { lease, ending: fenced }))]
    session.handle(lease)
    return [began, { kind: 'written', lease, ending: fenced }]
  },
}

/** As others do it: the work first, and no fence but the one of the delete. */
export const workUnfenced: Step = {
  label: 'begin and work',
  async perform(session) {
    const [lease] = session.hand
    if (lease === undefined) return []
    const began = await session.begin()
    session.handle(lease)
    return [began, await worked(session, lease)]
  },
}

export const work: Step = {
  label: 'work',
  perform: async (session) => (session.handled === null ? [] : [await worked(session, session.handled)]),
}

async function worked({ work, letter }: Session, { id }: Lease): Promise<Told> {
  await work('insert into effects (message, worker) values ($1, $2)', [id, letter])
  return { kind: 'worked', id }
}

/** Deletes the message and commits; without the delete, the work is not kept. */
export const complete: Step = completing('delete and commit', true)

/** All that is left to do. */
export const workAndComplete: Step = {
  label: 'work and commit',
  perform: async (session) => [...(await work.perform(session)), ...(await complete.perform(session))],
}

/** Only deletes: the commit is a step of its own. */
export const completeLater: Step = completing('delete', false)

function completing(label: string, commits: boolean): Step {
  return {
    label,
    async perform(session) {
      const lease = session.handled
      if (lease === null) return []
      const [row] = await session.run(deleteAcked(session.names, [lease]))
      if (row === undefined) return abort(session, { lease, ending: acked })
      session.letGo([lease])
      const written: Told = { kind: 'written', lease, ending: acked }
      return commits ? [written, await session.end('commit')] : [written]
    },
  }
}

async function abort(
  session: Session,
  lost: { readonly lease: Lease; readonly ending: Ending },
): Promise<readonly Told[]> {
  const rolledBack = await session.end('rollback')
  session.letGo([lost.lease])
  return [rolledBack, { kind: 'lease lost', ...lost }]
}
