import type { TestDatabase } from '../support/database.ts'

export type Role = 'work' | 'listen'

export interface Session {
  readonly pid: number
  readonly role: Role
}

/**
 * The connections of a worker, told by what they last ran: the one that listens runs LISTEN and the statements with advisory locks.
 * One that has not run anything yet is left out.
 */
export async function sessionsOf(database: TestDatabase, name: string): Promise<readonly Session[]> {
  return database.query<Session & Record<string, unknown>>(
    `
      select pid,
             case when query ~* '^\\s*listen|advisory' then 'listen' else 'work' end as role
        from pg_stat_activity
       where application_name = $1
         and query <> ''
       order by role desc, pid
    `,
    [name],
  )
}

/** Ends the backend, as an administrator or a fail-over would. Resolves when the server says that it is being done. */
export async function terminate(database: TestDatabase, pid: number): Promise<void> {
  await database.query('select pg_terminate_backend($1, 30000)', [pid])
}
