import packageJson from '../../package.json' with { type: 'json' }

export const musterVersion: string = packageJson.version
