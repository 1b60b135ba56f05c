/** Refuses an output schema that answers could not be validated with. */
import type { OutputSchema } from '../../state/run-state.ts'
import { faultOfSchema } from '../../agent/output/output-schema.ts'
import { Problem } from '../../contract/problem.ts'

export async function checkOutputSchema(schema: OutputSchema): Promise<void> {
  const fault = await faultOfSchema(schema)
  if (fault !== undefined) throw new Problem('invalid_request', `output_schema ${fault}`)
}
