import { expect, test } from 'vitest'
import { normalDefinition } from './view-definition.ts'

const ours = `select id, coalesce(a, b) as a, 'x'::text as status, null::timestamp with time zone as c
  from "s"."t"
 where d is null and (e > now()) is not true
union all
select id, a, 'Y z'::text as status, c
  from "s"."Odd ""one"""`

test.each([
  ['as it was given', ours],
  [
    'as Postgres prints it',
    ` SELECT t.id,
    COALESCE(t.a, t.b) AS a,
    'x'::text AS status,
    NULL::timestamp with time zone AS c
   FROM s.t
  WHERE ((t.d IS NULL) AND ((t.e > now()) IS NOT TRUE))
UNION ALL
 SELECT "Odd ""one""".id,
    "Odd ""one""".a,
    'Y z'::text AS status,
    "Odd ""one""".c
   FROM s."Odd ""one""";`,
  ],
  ['with aliases of tables', ours.replace('"t"', '"t" t_1').replace('d is null', 't_1.d is null')],
  ['without aliases of columns', ours.replaceAll(/ as \w+/g, '')],
])('a definition %s is the same', (_, definition) => {
  expect(normalDefinition(definition)).toBe(normalDefinition(ours))
})

test.each([
  ['another text', `'x'`, `'X'`],
  ['another column', 'a, b', 'a, c'],
  ['another order', 'a, b', 'b, a'],
  ['another table', '"s"."t"', '"s"."T"'],
  ['another schema', '"s"."t"', '"r"."t"'],
  ['another condition', 'is not true', 'is true'],
  ['another operator', 'e >', 'e >='],
  ['another type', 'timestamp with time zone', 'timestamp without time zone'],
  ['no condition', ' where d is null and (e > now()) is not true', ''],
  ['no duplicates', 'union all', 'union'],
  ['a limit', '"Odd ""one"""', '"Odd ""one""" where true limit 1'],
])('with %s it is another', (_, part, other) => {
  expect(ours).toContain(part)
  expect(normalDefinition(ours.replace(part, other))).not.toBe(normalDefinition(ours))
})

test('what is no definition is not a definition', () => {
  expect(normalDefinition('')).toBe('')
  expect(normalDefinition('from')).not.toBe(normalDefinition(ours))
})
