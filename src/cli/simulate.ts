export const runSimulate = async (): Promise<number> => 0;
