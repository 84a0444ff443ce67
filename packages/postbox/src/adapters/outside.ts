/** Why a handle is in no transaction, and what to pass instead. Loaded when one is refused: publishers carry only the names. */
export const outside = {
  aPool: 'this is a pool, which may run each statement on another connection: pass the client that ran BEGIN',
  idle: 'no transaction is open on this client: BEGIN was not awaited, or it has ended',
  unmarked: 'no transaction is open on this connection',
  failed: 'its transaction has already failed: ROLLBACK first',
  ended: 'its transaction has ended',
  postgresJs: 'this is the postgres.js client: pass the handle that sql.begin gives to its callback',
  pglite: 'this is the PGlite instance: pass the handle that db.transaction gives to its callback',
  drizzle: 'this is the Drizzle database: pass the tx that db.transaction gives to its callback',
  kysely: 'this is the Kysely instance: pass the trx that db.transaction().execute gives to its callback',
} as const

/** What is known of a client is here; an own handle says it in words. */
export type Outside = keyof typeof outside | `its \`inTransaction\` says ${string}`

export function whyOutside(because: Outside): string {
  return because in outside ? outside[because as keyof typeof outside] : because
}
