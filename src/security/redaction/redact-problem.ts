/** Redacts secrets in an expected failure. */
import { Problem } from '../../contract/problem.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'

export function redactProblem(problem: Problem, redact: (text: string) => string): Problem {
  const { code, message, cause } = problem
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same shape, with other texts
  const details = mapStrings(problem.details, redact) as Problem['details']
  return new Problem(code, redact(message), { ...(details && { details }), cause })
}
