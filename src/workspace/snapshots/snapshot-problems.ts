/** Why there is no snapshot. */
import { Problem } from '../../contract/problem.ts'

export const withoutGit = () => new Problem('unavailable', 'Snapshots need git, and this server has none. Install git.')

export const noSnapshot = (seq: number) =>
  new Problem(
    'snapshot_not_found',
    `There is no snapshot of the files after event ${seq}: none was taken then, it was removed, or it is on the disk of another instance. GET events?types=WorkspaceSnapshot lists those that were taken.`,
    { details: { seq } },
  )
