/** SHA-256 of the root certificate, lower-case hex: written here by `npm run build:agent -- --pin`. Null: any root. */
export const pinnedRoot: string | null = null
